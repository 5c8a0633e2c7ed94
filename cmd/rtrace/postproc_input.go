package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"rtrace-bpf/decoder"
	"rtrace-bpf/decoder/sprtrace"
	"rtrace-bpf/decoder/sptext"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

// postprocInput is a trace that can be read twice: a regular file, or a stream that is
// copied to a temporary file on the first reading.
type postprocInput struct {
	ctx    context.Context
	path   string // empty: stdin
	stdin  io.Reader
	legacy bool
	warn   func(text string)
	skim   bool // calls are not needed, from the next opening on

	format  string // name in package decoder, once it is open
	more    bool   // it has data that sp-rtrace's formats cannot represent
	regular bool
	spool   *os.File
	closers []func() error
}

// postprocTrace is an open trace.
type postprocTrace struct {
	trace.Reader
	format   string
	skipped  func() uint64   // packets so far
	warnings func() []string // legacy: the warnings of the original
	text     *sptext.Reader  // legacy: the reader of a text
}

func (i *postprocInput) name() string {
	if i.path == "" {
		return "standard input"
	}
	return i.path
}

// open opens the trace. twice means that it will be read again.
func (i *postprocInput) open(twice bool) (*postprocTrace, error) {
	r := i.stdin
	if i.path == "" {
		r = untilDone(i.ctx, r)
	} else {
		info, err := os.Stat(i.path)
		if err != nil {
			return nil, cli.FileError("opening", i.path, err)
		}
		if i.regular = info.Mode().IsRegular(); i.regular && !i.legacy {
			return i.openFile()
		}
		if r, err = i.openRaw(); err != nil {
			return nil, err
		}
	}
	if twice && !i.regular {
		if err := i.makeSpool(); err != nil {
			return nil, err
		}
		r = io.TeeReader(r, i.spool)
	}
	return i.decode(r)
}

func (i *postprocInput) openRaw() (io.Reader, error) {
	f, err := os.Open(i.path)
	if err != nil {
		return nil, cli.FileError("opening", i.path, err)
	}
	i.closers = append(i.closers, f.Close)
	return f, nil
}

// failed adds the name of the input to the error of opening it.
func (i *postprocInput) failed(err error) error {
	return fmt.Errorf("reading %s: %w", i.name(), err)
}

// makeSpool creates the temporary file and, if possible, removes its name.
func (i *postprocInput) makeSpool() error {
	f, err := os.CreateTemp("", "rtrace-postproc-")
	if err != nil {
		return fmt.Errorf("making a temporary file for the input: %w", err)
	}
	i.spool = f
	i.closers = append(i.closers, func() error {
		return errors.Join(f.Close(), ignoreMissing(os.Remove(f.Name())))
	})
	_ = os.Remove(f.Name()) // otherwise the name is removed on close
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// again opens the trace a second time.
func (i *postprocInput) again() (*postprocTrace, error) {
	switch {
	case i.regular && !i.legacy:
		return i.openFile()
	case i.regular:
		f, err := i.openRaw()
		if err != nil {
			return nil, err
		}
		return i.decode(f)
	}
	if _, err := i.spool.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the temporary file: %w", err)
	}
	return i.decode(i.spool)
}

// options returns the options of the decoders. Warnings are printed only in the first pass.
func (i *postprocInput) options() decoder.Options {
	o := decoder.Options{Legacy: i.legacy, Skim: i.skim && !i.legacy}
	if i.format == "" {
		o.Warn = func(err error) { i.warn(err.Error()) }
	}
	return o
}

// openFile opens a regular file with its side file.
func (i *postprocInput) openFile() (*postprocTrace, error) {
	o := i.options()
	t, err := decoder.OpenFile(i.path, o)
	if err != nil {
		return nil, err
	}
	if o.Skim && t.Side != "" {
		// A side file refers to the calls of the trace.
		if err := t.Close(); err != nil {
			return nil, err
		}
		o.Skim = false
		if t, err = decoder.OpenFile(i.path, o); err != nil {
			return nil, err
		}
	}
	return i.use(t), nil
}

func (i *postprocInput) use(t *decoder.Trace) *postprocTrace {
	everyCall(t, "postproc")
	i.format = t.Format
	i.more = t.Format == "jsonl" || t.Side != ""
	i.closers = append(i.closers, t.Close)
	open := &postprocTrace{
		Reader: t.Reader, format: t.Format,
		skipped:  func() uint64 { return t.Stats().Skipped },
		warnings: func() []string { return nil },
	}
	switch t.Format {
	case "sprtrace":
	case "text":
		open.Reader = &inOrder{src: t}
	default:
		// Other formats have moves, which are two calls in the text.
		open.Reader = filter.NewSplitMoves(t)
	}
	return open
}

// decode opens a stream.
func (i *postprocInput) decode(r io.Reader) (*postprocTrace, error) {
	if i.legacy {
		return i.decodeLegacy(r)
	}
	t, err := decoder.Open(r, i.options())
	if err != nil {
		return nil, i.failed(err)
	}
	return i.use(t), nil
}

// decodeLegacy opens a stream like the original, which has two formats: anything that does
// not start like the binary one is a text.
func (i *postprocInput) decodeLegacy(r io.Reader) (*postprocTrace, error) {
	in, err := decoder.NewInput(r)
	if err != nil {
		return nil, i.failed(err)
	}
	i.closers = append(i.closers, in.Close)
	t := &postprocTrace{skipped: func() uint64 { return 0 }, warnings: func() []string { return nil }}
	if t.format, err = in.Format(); err != nil && !errors.Is(err, decoder.ErrUnknown) {
		return nil, i.failed(err)
	}
	if t.format != "sprtrace" {
		t.format = "text"
	}
	i.format = t.format
	if t.format == "text" {
		t.text, err = sptext.New(in, sptext.Options{Legacy: true, Warn: i.warn})
		t.Reader = t.text
		return t, err
	}
	d, err := sprtrace.New(in, sprtrace.Options{Legacy: true})
	if err != nil {
		return nil, i.failed(err)
	}
	t.Reader = d
	t.warnings = func() []string {
		var lines []string
		for _, w := range d.Warnings() {
			lines = append(lines, "WARNING: "+w+"\n")
		}
		return lines
	}
	return t, nil
}

// close releases everything that was opened.
func (i *postprocInput) close() error {
	var all []error
	for _, c := range slices.Backward(i.closers) {
		all = append(all, c())
	}
	i.closers = nil
	return errors.Join(all...)
}
