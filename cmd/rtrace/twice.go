package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

// twice is an input that can be read more than once: a regular file, or a stream that is
// copied to a temporary file first.
type twice struct {
	flags   *inputFlags
	ctx     context.Context
	name    string // for messages
	command string
	path    string // of a regular file
	copied  *os.File
	options decoder.Options
}

// openTwice opens the one trace that args name.
func (i *inputFlags) openTwice(ctx context.Context, s cli.Streams, command string, args []string) (*twice, error) {
	name, err := oneFile(s, args)
	if err != nil {
		return nil, err
	}
	t := &twice{
		flags: i, ctx: ctx, name: name, command: command, path: name,
		options: decoder.Options{Strict: i.strict, NoSide: i.noSide, Warn: warner(s.Err, command)},
	}
	in := s.In
	if name == "" {
		t.name = "standard input"
	} else {
		info, err := os.Stat(name)
		if err != nil {
			return nil, cli.FileError("opening", name, err)
		}
		if info.Mode().IsRegular() {
			return t, nil
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, cli.FileError("opening", name, err)
		}
		defer f.Close()
		in = f
	}
	t.path = ""
	if err := t.copyOf(untilDone(ctx, in)); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// copyOf copies a stream to a temporary file.
func (t *twice) copyOf(in io.Reader) error {
	f, err := os.CreateTemp("", "rtrace-input-")
	if err != nil {
		return fmt.Errorf("making a temporary file for the input: %w", err)
	}
	t.copied = f
	_ = os.Remove(f.Name()) // otherwise the name is removed on close
	if _, err := io.Copy(f, in); err != nil {
		return fmt.Errorf("copying %s: %w", t.name, err)
	}
	return nil
}

// read reads the trace from its beginning. It passes each record of package filter to each:
// moves are two calls, numbered as in the text of sp-rtrace. A cut trace is read up to the
// cut, with an error that leaves a result worth keeping (see isIncomplete).
func (t *twice) read(process processFlags, each func(src *processReader, r trace.Reader) error) (err error) {
	in := &input{name: t.name}
	if t.path != "" {
		in.Trace, err = decoder.OpenFile(t.path, t.options)
	} else if _, err = t.copied.Seek(0, io.SeekStart); err == nil {
		in.Trace, err = decoder.Open(t.copied, t.options)
		if err != nil {
			err = fmt.Errorf("reading %s: %w", t.name, err)
		}
	}
	if err != nil {
		return err
	}
	everyCall(in.Trace, t.command)
	t.options.Warn = func(error) {} // once is enough
	defer func() { err = errors.Join(err, in.Close()) }()
	src, err := process.reader(&untilDoneReader{ctx: t.ctx, r: in.Reader})
	if err != nil {
		return err
	}
	var r trace.Reader = src
	if in.Format != "sprtrace" && in.Format != "text" {
		r = filter.NewSplitMoves(src)
	}
	return in.outcome(each(src, r))
}

func (t *twice) close() error {
	if t.copied == nil {
		return nil
	}
	return errors.Join(t.copied.Close(), ignoreMissing(os.Remove(t.copied.Name())))
}
