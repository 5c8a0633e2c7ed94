package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// inputFlags are the flags of commands that read one trace.
type inputFlags struct {
	strict  bool
	noSide  bool
	windows bool // the command knows windows
}

func (i *inputFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&i.strict, "strict", false, "fail at unknown or damaged packets instead of skipping them")
	f.BoolVar(&i.noSide, "no-side", false, "do not use the side file of the trace")
}

// input is one open trace.
type input struct {
	*decoder.Trace
	name string // for messages
}

// open opens the trace that args name: a file, or standard input.
func (i *inputFlags) open(ctx context.Context, s cli.Streams, command string, args []string) (*input, error) {
	name, err := oneFile(s, args)
	if err != nil {
		return nil, err
	}
	return i.openNamed(ctx, s.In, command, name, warner(s.Err, command))
}

// openNamed opens a file, or stdin if name is empty.
func (i *inputFlags) openNamed(ctx context.Context, stdin io.Reader, command, name string, warn func(error)) (_ *input, err error) {
	o := decoder.Options{Strict: i.strict, NoSide: i.noSide, Warn: warn}
	in := &input{name: name}
	if name == "" {
		in.name = "standard input"
		if in.Trace, err = decoder.Open(untilDone(ctx, stdin), o); err != nil {
			return nil, cli.WithHint(fmt.Errorf("reading %s: %w", in.name, err), inputHint("", err))
		}
	} else if err = noDirectory(name); err != nil {
		return nil, err
	} else if in.Trace, err = decoder.OpenFile(name, o); err != nil {
		return nil, cli.WithHint(err, inputHint(name, err))
	}
	if !i.windows {
		everyCall(in.Trace, command)
	}
	in.Reader = &untilDoneReader{ctx: ctx, r: in.Reader}
	return in, nil
}

// noDirectory returns the error for an input that is a directory, with a trace in it as a
// hint.
func noDirectory(name string) error {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return nil
	}
	some := filepath.Join(name, "rtrace-raw-4711-0")
	if all, err := filepath.Glob(filepath.Join(name, "rtrace-raw-*")); err == nil && len(all) > 0 {
		some = all[0]
	}
	return cli.WithHint(fmt.Errorf("%s is a directory", name), "name a trace in it, such as "+cli.Word(some))
}

// inputHint returns what to do about an input that cannot be read. name is that of its file,
// empty for standard input.
func inputHint(name string, err error) string {
	const record = "rtrace-bpf -p PID -o FILE records a trace"
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "a trace belongs to the user who recorded it: read it as that user, or with sudo"
	case errors.Is(err, decoder.ErrUnknown) && name != "" && filepath.Ext(name) != ".side": // which is part of the error
		return fmt.Sprintf("%s is %s; %s", name, kindOf(name), record)
	case errors.Is(err, decoder.ErrEmpty) && name == "":
		return "name a file, or pipe a trace in"
	case errors.Is(err, decoder.ErrEmpty):
		return "nothing was written to it; " + record
	}
	return ""
}

// kindOf describes a file that is not a trace.
func kindOf(name string) string {
	const other = "not a trace that rtrace knows"
	f, err := os.Open(name)
	if err != nil {
		return other
	}
	defer f.Close()
	head := make([]byte, 18)
	n, _ := io.ReadFull(f, head)
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("\x7fELF")) && n > 16 && head[16]+head[17] == 4: // ET_CORE
		return "a core file"
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return "a program or a library"
	case !bytes.ContainsFunc(head, func(c rune) bool { return c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == utf8.RuneError }):
		return "a text, and " + other
	}
	return other
}

// examine opens the trace that args name, calls read, and then show, also if the trace is
// cut.
func (i *inputFlags) examine(ctx context.Context, s cli.Streams, command string, args []string,
	read func(*input) error, show func(*input) error,
) (err error) {
	in, err := i.open(ctx, s, command, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err = in.outcome(read(in)); !isIncomplete(err) {
		return err
	}
	if e := show(in); e != nil {
		return e
	}
	return err
}

// oneFile returns the only file of args, or "" for standard input.
func oneFile(s cli.Streams, args []string) (string, error) {
	switch {
	case len(args) > 1:
		return "", cli.Usagef("one FILE at most, not %d", len(args))
	case len(args) == 1 && args[0] != "-":
		return args[0], nil
	case s.InTerminal:
		return "", cli.Usagef("no FILE, and standard input is a terminal")
	}
	return "", nil
}

// openBytes opens the input without a decoder.
func openBytes(ctx context.Context, s cli.Streams, args []string) (r io.Reader, name string, closer func(), err error) {
	if name, err = oneFile(s, args); err != nil {
		return nil, "", nil, err
	}
	if name == "" {
		return untilDone(ctx, s.In), "standard input", func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, "", nil, cli.FileError("opening", name, err)
	}
	return untilDone(ctx, f), name, func() { _ = f.Close() }, nil // only read
}

func warner(w io.Writer, command string) func(error) {
	return func(err error) { fmt.Fprintf(w, "rtrace %s: warning: %v\n", command, err) }
}

// outcome converts the error of reading and writing a trace to the command's error. An input
// that is cut, or has records that could not be read, is incomplete, not failed.
func (in *input) outcome(err error) error {
	if err == nil {
		return skipped(in.name, in.Stats().Skipped)
	}
	return cut(in.name, err)
}

// skipped returns a note about records that could not be read, if there are any. Some of
// them, packets of unknown kinds, are kept in formats that have a place for them.
func skipped(name string, n uint64) error {
	switch n {
	case 0:
		return nil
	case 1:
		return cli.Incompletef("%s has one record that cannot be read: the results do not include it", name)
	}
	return cli.Incompletef("%s has %d records that cannot be read: the results do not include them", name, n)
}

// cut returns a note if the input ends too early: the results then cover the existing part.
// If the input violates its format, there are no results.
func cut(name string, err error) error {
	syntax, ok := errors.AsType[*trace.SyntaxError](err)
	switch {
	case errors.Is(err, decoder.ErrEmpty):
		return fmt.Errorf("reading %s: %w", name, err)
	case !ok:
		return err
	case errors.Is(err, trace.ErrUnfinished):
		return cli.Incompletef("%s is incomplete: %w: it was cut, or its tracer did not finish; the results cover the part that exists", name, syntax.Err)
	case errors.Is(err, trace.ErrTruncated):
		return cli.Incompletef("%s is cut: %w; the results cover the part before that", name, err)
	case errors.Is(err, trace.ErrLimit), errors.Is(err, trace.ErrMalformed):
		return fmt.Errorf("reading %s: %w; any results cover only the part before that", name, err)
	}
	return fmt.Errorf("reading %s: %w", name, err)
}

// isIncomplete reports whether err leaves a result that is worth keeping.
func isIncomplete(err error) bool { return err == nil || errors.Is(err, cli.ErrIncomplete) }

// untilDoneReader is a trace.Reader that ends with a context.
type untilDoneReader struct {
	ctx context.Context
	r   trace.Reader
	n   uint
}

func (u *untilDoneReader) ReadRecord(r *trace.Record) error {
	if u.n++; u.n%1024 == 0 {
		if err := u.ctx.Err(); err != nil {
			return err
		}
	}
	return u.r.ReadRecord(r)
}

// untilDone returns a reader of r that fails with the context's error when the context ends,
// even while r waits.
func untilDone(ctx context.Context, r io.Reader) io.Reader {
	u := &pump{ctx: ctx, full: make(chan piece), free: make(chan []byte, 2)}
	u.free <- make([]byte, 64<<10)
	u.free <- make([]byte, 64<<10)
	go u.run(r)
	return u
}

// pump reads ahead in a goroutine of its own. The goroutine ends with its reader, or with
// the process if the reader never returns.
type pump struct {
	ctx  context.Context
	full chan piece
	free chan []byte
	now  piece
	left []byte // rest of now
}

type piece struct {
	buf []byte
	n   int
	err error
}

func (p *pump) run(r io.Reader) {
	for {
		var buf []byte
		select {
		case buf = <-p.free:
		case <-p.ctx.Done():
			return
		}
		n, err := r.Read(buf)
		select {
		case p.full <- piece{buf, n, err}:
		case <-p.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (p *pump) Read(b []byte) (int, error) {
	for len(p.left) == 0 {
		if p.now.err != nil {
			return 0, p.now.err
		}
		if p.now.buf != nil {
			p.free <- p.now.buf
			p.now = piece{}
		}
		select {
		case p.now = <-p.full:
			p.left = p.now.buf[:p.now.n]
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}
