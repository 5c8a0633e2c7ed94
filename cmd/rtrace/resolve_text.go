package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/decoder"
	"rtrace-bpf/decoder/sptext"
	"rtrace-bpf/internal/symbol/resolve"
	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// textFile rewrites a text that can be read twice. sp-rtrace records a mapping late, so an
// address that no mapping covers at the time of its use may be in a later mapping. Data of
// the side file about files and mappings replaces that of the text.
func (x *resolving) textFile(out io.Writer) error {
	read := func(do func(*decoder.Input) error) error {
		r, _, done, err := openBytes(x.ctx, x.streams, []string{x.name})
		if err != nil {
			return err
		}
		defer done()
		in, err := decoder.NewInput(r)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }() // only read
		return do(in)
	}
	// The second reading reports errors in the input.
	if x.withSide != nil {
		observeMappings(x.ctx, x.resolver, x.name, decoder.Options{Strict: x.in.strict})
	} else {
		_ = read(func(in *decoder.Input) error { return sptext.Mappings(x.ctx, in, x.resolver.Observe) })
	}
	err := read(func(in *decoder.Input) error { return x.rewrite(out, in, in) })
	if err != nil || x.withSide == nil {
		return cut(x.name, err)
	}
	return x.withSide.outcome(readAll(x.withSide)) // its side file may be cut
}

// ownOrigin is in the header of a text whose mappings come in order: those of the tracer,
// which may be read while they are written, and of rtrace postproc, which has all mappings
// at the beginning.
var ownOrigin = []byte(wire.KeyOrigin + "=rtrace-bpf ")

// textStream rewrites a text that can be read once. If the text has its mappings in order,
// it is passed on as it comes. Others are copied to a temporary file and read like textFile.
func (x *resolving) textStream(out io.Writer, raw *decoder.Input, name string) (err error) {
	in := bufio.NewReaderSize(raw, 64<<10)
	head, err := in.ReadSlice('\n')
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	all := io.MultiReader(bytes.NewReader(bytes.Clone(head)), in)
	if bytes.Contains(head, ownOrigin) {
		return x.rewrite(out, all, raw)
	}
	copied := &twice{ctx: x.ctx, name: name}
	defer func() { err = errors.Join(err, copied.close()) }()
	// Records before an error of the input are still useful.
	if err := copied.copyOf(all); err != nil && raw.Err() == nil {
		return err
	}
	for _, pass := range []func(io.Reader) error{
		func(r io.Reader) error { return sptext.Mappings(x.ctx, r, x.resolver.Observe) },
		func(r io.Reader) error { return x.rewrite(out, r, raw) },
	} {
		if _, err = copied.copied.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("reading the temporary file: %w", err)
		}
		err = pass(copied.copied)
	}
	return err
}

// rewrite rewrites the text of in.
func (x *resolving) rewrite(w io.Writer, text io.Reader, in *decoder.Input) error {
	editor := &frameEditor{resolver: x.resolver, replace: !x.keep}
	if x.withSide != nil {
		editor.withSide = x.withSide
	}
	err := sptext.Rewrite(x.ctx, w, text, editor)
	if cause := in.Err(); cause != nil && (err == nil || isSyntax(err)) {
		return cause
	}
	return err
}

// frameEditor names the frames of a text.
type frameEditor struct {
	resolver *resolve.Resolver
	replace  bool
	process  *resolve.Process // nil: not yet needed
	withSide trace.Reader     // the same text with the data of its side file; nil for none
	rec      trace.Record     // last record of that
}

var _ sptext.Editor = (*frameEditor)(nil)

func (e *frameEditor) Observe(r *trace.Record) {
	e.process = nil
	if e.withSide == nil || !e.follow(r) {
		e.resolver.Observe(r)
	}
}

// follow observes the records of withSide up to the same record. It returns false if there
// is none.
func (e *frameEditor) follow(r *trace.Record) bool {
	for {
		if err := e.withSide.ReadRecord(&e.rec); err != nil {
			e.withSide = nil
			return false
		}
		e.resolver.Observe(&e.rec)
		if e.rec.Kind == r.Kind && (r.Kind != trace.KindMapping && r.Kind != trace.KindUnmapping || e.rec.Mapping.End == r.Mapping.End) {
			return true
		}
	}
}

func (e *frameEditor) Filter(old string) string { return resolve.WithFilter(old) }

func (e *frameEditor) Frame(addr uint64, old string) string {
	if e.process == nil {
		e.process = e.resolver.Process(0)
	}
	return e.process.Better(addr, old, e.replace)
}
