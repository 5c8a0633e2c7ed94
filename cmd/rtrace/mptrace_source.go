package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/mptrace"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// mptraceSource is a trace as events of mpatrol.
type mptraceSource interface {
	name() string
	// words is the size of the current stream's addresses in bytes.
	words() int
	// next sets e to the next event of the stream and returns its time in nanoseconds since
	// the trace began, or io.EOF. It reports records that are not events to p.
	next(e *wire.Event, p *mptrace.Printer) (time int64, err error)
	nextStream() (bool, error)
	// verdict reports oddities, and how complete the trace was.
	verdict(warn func(format string, args ...any)) error
	close() error
}

// flushingReader flushes the outputs before it reads, because reading may block.
type flushingReader struct {
	io.Reader
	flush func() error
}

func (f *flushingReader) Read(b []byte) (int, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.Reader.Read(b)
}

// open opens the trace; path is "" for standard input.
func (r *mptraceRun) open(path string) (mptraceSource, error) {
	var (
		raw     = r.streams.In
		stop    = func() error { return nil }
		regular bool
		name    = "standard input"
	)
	if path != "" {
		f, err := os.Open(path)
		if err != nil {
			return nil, cli.FileError("opening", path, err)
		}
		info, err := f.Stat()
		if err != nil {
			return nil, errors.Join(cli.FileError("opening", path, err), f.Close())
		}
		raw, stop, regular, name = f, f.Close, info.Mode().IsRegular(), path
	}
	if !regular {
		raw = untilDone(r.ctx, raw)
	}
	src, err := r.decode(name, &flushingReader{raw, r.outputs.flush}, stop, regular)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return src, nil
}

// decode determines the format.
func (r *mptraceRun) decode(name string, raw io.Reader, stop func() error, regular bool) (mptraceSource, error) {
	in, err := decoder.NewInput(raw)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	format, err := in.Format()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", name, err), in.Close())
	}
	if format == wire.Format {
		return newMtrcSource(name, in, stop)
	}
	o := decoder.Options{Warn: warner(r.streams.Err, "mptrace")}
	var t *decoder.Trace
	if regular { // it may have a side file
		if err := errors.Join(in.Close(), stop()); err != nil {
			return nil, err
		}
		stop = func() error { return nil }
		if t, err = decoder.OpenFile(name, o); err != nil {
			return nil, err
		}
	} else if t, err = decoder.Open(in, o); err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", name, err), in.Close())
	}
	everyCall(t, "mptrace")
	return newRecordSource(name, t, func() error { return errors.Join(t.Close(), in.Close(), stop()) })
}
