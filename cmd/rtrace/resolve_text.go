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

// textFile rewrites a text that can be read twice: as sp-rtrace finds out late
// about a mapping, addresses that no mapping covers when they are used may lie in
// one of the later ones. What its side file adds about files and mappings counts
// instead of what the text has of them.
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
	// What is wrong with the input is told the second time.
	if x.told != nil {
		observeMappings(x.ctx, x.resolver, x.name, decoder.Options{Strict: x.in.strict})
	} else {
		_ = read(func(in *decoder.Input) error { return sptext.Mappings(x.ctx, in, x.resolver.Observe) })
	}
	err := read(func(in *decoder.Input) error { return x.rewrite(out, in, in) })
	if err != nil || x.told == nil {
		return cut(x.name, err)
	}
	return x.told.outcome(readAll(x.told)) // its side file may be cut
}

// ownOrigin stands in the header of a text whose mappings come in their order: those
// of the tracer, which may be watched while they are made, and of rtrace postproc,
// which has all mappings in front.
var ownOrigin = []byte(wire.KeyOrigin + "=rtrace-bpf ")

// textStream rewrites a text that can be read once. It passes on as it comes what
// has the mappings in their order, and copies others to a temporary file to read
// them as textFile does.
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
	// What was read before an error of the input is still of use.
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

// rewrite rewrites a text that comes from in.
func (x *resolving) rewrite(w io.Writer, text io.Reader, in *decoder.Input) error {
	editor := &frameEditor{resolver: x.resolver, replace: !x.keep}
	if x.told != nil {
		editor.told = x.told
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
	process  *resolve.Process // nil: to be asked for
	told     trace.Reader     // the same text with what its side file adds; nil for none
	rec      trace.Record     // read from that
}

var _ sptext.Editor = (*frameEditor)(nil)

func (e *frameEditor) Observe(r *trace.Record) {
	e.process = nil
	if e.told == nil || !e.follow(r) {
		e.resolver.Observe(r)
	}
}

// follow observes what told has up to the same record. It returns false if told does
// not have it.
func (e *frameEditor) follow(r *trace.Record) bool {
	for {
		if err := e.told.ReadRecord(&e.rec); err != nil {
			e.told = nil
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
