package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	encoder "rtrace-bpf/encoder/sptext"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// postprocCommand prints a trace as sp-rtrace-postproc does.
func postprocCommand() command {
	return command{
		name: "postproc",
		page: cli.Page{
			Summary:  "print a trace, or what it leaks, as sp-rtrace-postproc does",
			Synopsis: []string{"[flags] [FILE]", "[flags] -i FILE"},
			About: "Prints the calls of a trace with their stacks, one after the other, behind the mappings and " +
				"registries they refer to. With -l only the allocations are left that nothing frees, and a summary " +
				"for each kind of resource follows.\n\n" +
				"The output is a trace again: rtrace postproc reads it, and so do the tools of sp-rtrace. " +
				"A trace that is read from a pipe is copied to a temporary file unless -l is given.",
			Examples: []cli.Example{
				{Does: "print what leaked, with function names", Command: "rtrace postproc -l -r rtrace-raw-4711-0"},
				{Does: "the same in two steps", Command: "rtrace postproc -l rtrace-raw-4711-0 | rtrace postproc -r"},
			},
		},
		setup: func(f *flags) runFunc {
			var o postprocOptions
			in := f.group("Input and output")
			in.StringVarP(&o.input, "input-file", "i", "", "read `FILE` (default: standard input, also with -)")
			in.StringVarP(&o.output, "output-dir", "o", "",
				"write `DIR`/PID-N.rtrace.txt, or the file of that name if it is no folder (default: standard output)")
			in.BoolVarP(&o.quiet, "quiet", "q", false, "print no warnings")
			what := f.group("What to print")
			what.BoolVarP(&o.leaks, "filter-leaks", "l", false, "print only allocations that are never freed, and a summary")
			what.BoolVarP(&o.resolve, "resolve", "r", false, "name the functions of the stacks")
			what.BoolVar(&o.legacy, "legacy", false,
				"print byte for byte what sp-rtrace-postproc prints, its errors included")
			return func(ctx context.Context, s cli.Streams, args []string) error {
				return o.run(ctx, s, args)
			}
		},
	}
}

type postprocOptions struct {
	input, output  string
	leaks, resolve bool
	legacy, quiet  bool
}

func (o *postprocOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if o.input != "" {
		args = append(args, o.input)
	}
	name, err := oneFile(s, args)
	if err != nil {
		return err
	}
	p := &postprocess{
		postprocOptions: o, ctx: ctx, streams: s,
		in: postprocInput{ctx: ctx, path: name, stdin: s.In, legacy: o.legacy},
	}
	p.in.warn = p.warn
	err = p.print()
	return errors.Join(err, p.in.close())
}

// postprocess is one run.
type postprocess struct {
	*postprocOptions
	ctx     context.Context
	streams cli.Streams
	in      postprocInput
	env     environment
	ending  error // what the input ends with, if that is not io.EOF

	comments []placedComment // legacy: of a text
}

// warn prints a warning, in legacy mode one that the original prints.
func (p *postprocess) warn(text string) {
	switch {
	case p.quiet:
	case p.legacy:
		fmt.Fprint(p.streams.Err, text)
	default:
		warner(p.streams.Err, "postproc")(errors.New(text))
	}
}

// print is the whole run. With -l the input is read once: what is kept is
// small. Otherwise it is read twice, as all that stands in front of the calls
// may be said anywhere in a trace. A text in legacy mode is held in memory:
// the original sorts it.
func (p *postprocess) print() error {
	t, err := p.in.open(!p.leaks)
	if err != nil {
		return err
	}
	p.env.begin(p.legacy, !p.leaks)
	first := t
	var (
		src   trace.Reader = &environmentReader{ctx: p.ctx, src: t, env: &p.env}
		leaks *filter.Leaks
	)
	if p.legacy && t.format == "text" {
		src = p.sorted(src)
		p.env.timestamp = t.text.Timestamp()
	}
	switch {
	case p.leaks:
		leaks = filter.NewLeaks(src)
		leaks.Fill()
		src = leaks
	case p.legacy && t.format == "text":
	default:
		if err := readAll(src); !isSyntax(err) {
			return err
		}
		if t, err = p.in.again(); err != nil {
			return err
		}
		src = t
	}
	for _, text := range first.warnings() {
		p.warn(text)
	}
	if err := p.ctx.Err(); err != nil {
		return err
	}
	if p.env.empty() {
		var rec trace.Record
		return cut(p.in.name(), src.ReadRecord(&rec))
	}
	switch {
	case p.legacy && p.env.header.BigEndian:
		return errors.New("unsupported architecture: the original reads traces of its own byte order only")
	case p.legacy && !p.env.hasProcess():
		return errors.New("failed to parse log header")
	}
	if err := p.write(src, leaks); err != nil {
		return err
	}
	return p.verdict(t.skipped())
}

// readAll reads up to the end and returns the error that is there, nil for io.EOF.
func readAll(src trace.Reader) error {
	var rec trace.Record
	for {
		if err := src.ReadRecord(&rec); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
	}
}

// isSyntax says that an error, if it is one, is in the trace and not in reading it.
func isSyntax(err error) bool {
	_, ok := errors.AsType[*trace.SyntaxError](err)
	return err == nil || ok
}

// write makes the output.
func (p *postprocess) write(src trace.Reader, leaks *filter.Leaks) error {
	out, err := p.create()
	if err != nil {
		return err
	}
	err = p.writeTo(out, src, leaks)
	return errors.Join(err, out.close())
}

func (p *postprocess) writeTo(out *postprocOutput, src trace.Reader, leaks *filter.Leaks) error {
	w, err := encoder.New(out, encoder.Options{KeepSeq: true, Legacy: p.legacy, Timestamp: p.env.timeText()})
	if err != nil {
		return err
	}
	p.env.filters(p.leaks, p.resolve)
	if p.in.format != "text" {
		p.env.origin(p.legacy)
	}
	if err := p.env.write(w); err != nil {
		return err
	}
	if p.resolve {
		src = p.resolver(src)
	}
	if err := p.copy(w, src); err != nil {
		return err
	}
	unmatched := p.env.unmatched()
	if leaks != nil {
		unmatched = leaks.Finder().Unmatched()
	}
	if unmatched > 0 && !p.legacy && !p.env.hadLeaks {
		if err := w.WriteUnmatched(unmatched); err != nil {
			return err
		}
	}
	if leaks != nil {
		if err := w.WriteLeaks(p.env.sums(leaks.Finder())); err != nil {
			return err
		}
	}
	return w.Close()
}

// resolver names the frames of src, as rtrace resolve -t elf does. sp-rtrace finds
// out late about a mapping, or at the end of the trace: so the addresses that no
// mapping covers when they are used may lie in one of the later ones.
func (p *postprocess) resolver(src trace.Reader) trace.Reader {
	warn := func(err error) {
		if !p.legacy {
			p.warn(printable.Name(err.Error()))
		}
	}
	r := resolve.New((&symbolFlags{}).local(warn))
	r.Observe(&trace.Record{Kind: trace.KindHeader, Header: p.env.header})
	for _, list := range [][]*trace.Record{p.env.processes, p.env.mappings} {
		for _, m := range list {
			r.Observe(m)
		}
	}
	return resolve.NewReader(src, r)
}

// copy writes what follows the environment: the calls, and between them the
// comments and losses.
func (p *postprocess) copy(w *encoder.Writer, src trace.Reader) error {
	sort := sorter{legacy: p.legacy}
	var rec trace.Record
	for n := 1; ; n++ {
		if err := src.ReadRecord(&rec); err != nil {
			if errors.Is(err, io.EOF) {
				return p.writeComments(w, nil)
			}
			if isSyntax(err) {
				p.ending = err
				return p.writeComments(w, nil)
			}
			return err
		}
		if n%interval == 0 && p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if sort.environment(&rec) || p.env.regenerated(&rec) {
			continue
		}
		if err := p.writeComments(w, &rec); err != nil {
			return err
		}
		if err := w.WriteRecord(&rec); err != nil {
			return err
		}
	}
}

// interval is how many records are read between two looks at the context.
const interval = 1 << 16

// verdict says how complete the output is.
func (p *postprocess) verdict(skipped uint64) error {
	switch {
	case p.ending != nil:
		return cut(p.in.name(), p.ending)
	case skipped > 0 && !p.legacy:
		return cli.Incompletef("%s: %d packets could not be read and are left out", p.in.name(), skipped)
	}
	return nil
}
