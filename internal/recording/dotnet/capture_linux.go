package dotnet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	decoder "rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/encoder"
	diagnostics "rtrace-bpf/internal/linux/dotnet"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/recording/status"
	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// Options are what a capture records, and where.
type Options struct {
	Events   diagnostics.Config
	Output   output.Options
	Format   string
	Encoding encoder.Options
	Duration time.Duration // 0 for no limit
	Line     *status.Line
	// Ready is called when the runtime sends its events.
	Ready func(context.Context) error
	// Hurry is closed when the recording is to end at once.
	Hurry <-chan struct{}
}

// capture is a recording of the events of a runtime alone.
type capture struct {
	*stream
	options *Options
	out     *outfile.File
	calls   uint64
}

// Capture records the events of a runtime into a file, until ctx ends, the process ends or
// for the duration that o limits.
func Capture(ctx context.Context, pid int, o *Options) error {
	s, err := findStream(ctx, pid, o.Events, o.Line)
	if err != nil {
		return err
	}
	c := &capture{stream: s, options: o}
	if c.out, err = output.OpenFile(ctx, &o.Output, pid); err != nil {
		return err
	}
	if err := c.begin(ctx); err != nil {
		return errors.Join(err, c.out.Discard())
	}
	c.line.Note("recording the events of process %d (%s, .NET %s), writing %s", pid, printable.Name(c.info.CommandLine), printable.Name(c.info.Version), c.out.Path())
	return c.run(ctx, o.Hurry)
}

// run records until the end of the recording, and what the runtime sends then.
func (c *capture) run(ctx context.Context, hurry <-chan struct{}) error {
	planned, cancel := context.WithCancel(ctx)
	defer cancel()
	if d := c.options.Duration; d > 0 {
		defer time.AfterFunc(d, cancel).Stop()
	}
	err := c.options.Ready(planned)
	if err != nil {
		cancel()
	}
	var stopErr error
	stopped := make(chan struct{})
	copied := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-planned.Done():
			if ctx.Err() == nil { // no signal has ended it: the first one is a hurry
				hurry = ctx.Done()
			}
			stopErr = c.stop(hurry, copied)
		case <-copied:
		}
	}()
	err = errors.Join(err, c.copy())
	close(copied)
	// If the stream was not read to its end, the runtime must not wait for that.
	closeErr := c.events.Close()
	<-stopped
	err = errors.Join(err, closeErr, c.out.Close())
	c.line.Clear()
	if err != nil {
		return err
	}
	c.line.Note("%s of events%s", status.Bytes(uint64(c.bytes)), c.counted())
	return c.verdict(stopErr)
}

// copy writes the stream as it is, or its records in another format.
func (c *capture) copy() error {
	if c.options.Format == wire.Format {
		return c.save()
	}
	e, err := encoder.New(c.options.Format, c.out, c.options.Encoding)
	if err != nil {
		return err
	}
	return errors.Join(c.decode(&counting{e, &c.calls}, decoder.Options{}), e.Close())
}

// save writes the stream as it is, and reads it at the same time to find out whether it is
// complete.
func (c *capture) save() error {
	to := &saving{w: c.out}
	in := bufio.NewReaderSize(io.TeeReader(c, to), saveBuffer)
	scanner, err := decoder.NewScanner(in, decoder.Options{})
	for err == nil {
		_, err = scanner.Next()
	}
	if !errors.Is(err, io.EOF) {
		c.flawed = err
	}
	_, err = io.Copy(io.Discard, in)
	return errors.Join(err, to.err)
}

// saveBuffer is how many bytes of a stream are read at once.
const saveBuffer = 64 << 10

// saving keeps the first error of writing. The reader of the same data sees an end instead.
type saving struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (s *saving) Write(p []byte) (int, error) {
	if s.err == nil {
		_, s.err = s.w.Write(p)
	}
	if s.err != nil {
		return 0, io.EOF // an end for the reader
	}
	return len(p), nil
}

// counted returns what was found in the stream, if its records were read.
func (c *capture) counted() string {
	if c.options.Format == wire.Format {
		return ""
	}
	return fmt.Sprintf(", %d sampled allocations", c.calls)
}

// counting counts calls, and announces in the header the end that a complete trace has.
type counting struct {
	trace.Writer
	calls *uint64
}

// WriteRecord implements trace.Writer.
func (c *counting) WriteRecord(r *trace.Record) error {
	switch r.Kind {
	case trace.KindCall:
		*c.calls++
	case trace.KindHeader:
		r.Header.Ends = true
	}
	return c.Writer.WriteRecord(r)
}
