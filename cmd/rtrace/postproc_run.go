package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	encoder "rtrace-bpf/encoder/sptext"
	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// print is the whole run. With -l and -c it reads the input once and holds what it needs.
// Otherwise it reads the input twice, because the environment may be anywhere in a trace. It
// holds a text in legacy mode in memory, because the original sorts it. Facts needed to
// select calls take another reading.
func (p *postprocess) print() error {
	once := p.leaks || p.compress
	p.in.skim = !once || p.prepare != nil
	t, err := p.in.open(!once || p.prepare != nil)
	if err != nil {
		return err
	}
	p.env.begin(p.legacy, !p.leaks && !p.chosen.Splits())
	first := t
	var src trace.Reader
	if p.legacy && t.format == "text" {
		src, err = p.legacyText(t)
	} else {
		if t, err = p.ahead(t, once); err == nil {
			src = p.environment(p.selected(t), once)
		}
	}
	if err != nil {
		return err
	}
	var content postprocContent
	switch {
	case once:
		if content, err = p.gather(src); err != nil {
			return err
		}
	case p.legacy && t.format == "text":
		content.calls = src
	default:
		if err := readAll(src); !isSyntax(err) {
			return err
		}
		if err := p.bounds(); err != nil {
			return err
		}
		if t, err = p.reopen(); err != nil {
			return err
		}
		content.calls = &environmentReader{ctx: p.ctx, src: p.selected(t), env: &p.env, count: true}
	}
	for _, text := range first.warnings() {
		p.warn(text)
	}
	if err := p.ctx.Err(); err != nil {
		return err
	}
	if p.env.empty() {
		return cut(p.in.name(), content.ended())
	}
	switch {
	case p.legacy && p.env.header.BigEndian:
		return errors.New("unsupported architecture: the original reads traces of its own byte order only")
	case p.legacy && !p.env.hasProcess():
		return errors.New("failed to parse log header")
	}
	if err := p.write(&content); err != nil {
		return err
	}
	return p.verdict(t.skipped())
}

// postprocContent is the output after the environment: calls, or groups and the other
// records.
type postprocContent struct {
	calls  trace.Reader
	leaks  *filter.Leaks // nil without -l
	chosen *chosenLeaks  // nil unless filters are applied to the leaks
	groups *filter.Groups
	others []*trace.Record
	err    error // the end of the groups' input, if that is not io.EOF
}

// ended returns the error for an input without any record.
func (c *postprocContent) ended() error {
	if c.groups != nil {
		return c.err
	}
	var rec trace.Record
	return c.calls.ReadRecord(&rec)
}

// gather reads all of src, which completes the environment.
func (p *postprocess) gather(src trace.Reader) (c postprocContent, err error) {
	c.calls = src
	if p.leaks {
		c.leaks = filter.NewLeaks(src)
		c.leaks.Fill()
		c.calls = c.leaks
		if p.choosesLeaks() {
			c.chosen = &chosenLeaks{src: p.front.Over(c.leaks), totals: make(map[uint32]leak.Sum)}
			c.calls = c.chosen
		}
	}
	if !p.compress {
		return c, nil
	}
	c.groups = filter.NewGroups()
	c.groups.Stackless, c.groups.Narrow = p.legacy, p.legacy
	s := sorter{legacy: p.legacy}
	var rec trace.Record
	for n := 1; ; n++ {
		if c.err = c.calls.ReadRecord(&rec); c.err != nil {
			break
		}
		switch {
		case rec.Kind == trace.KindCall:
			c.groups.Add(&rec)
		case rec.Kind == trace.KindEnd:
			p.end = rec.Clone()
		case !s.environment(&rec) && !p.env.regenerated(&rec):
			c.others = append(c.others, rec.Clone())
		}
	}
	if !isSyntax(c.err) && c.err != io.EOF {
		return c, c.err
	}
	return c, nil
}

// ahead reads the trace for facts needed to select calls, if there are any, and opens it
// again. once means that it is then opened with its calls.
func (p *postprocess) ahead(t *postprocTrace, once bool) (*postprocTrace, error) {
	if p.prepare == nil {
		return t, nil
	}
	look, err := p.look(t)
	if !isSyntax(err) {
		return nil, err
	}
	if err := p.prepare(look); err != nil {
		return nil, err
	}
	p.in.skim = !once
	return p.in.again()
}

// reopen opens the trace again, with its calls.
func (p *postprocess) reopen() (*postprocTrace, error) {
	p.in.skim = false
	return p.in.again()
}

// bounds reads the trace for the lowest and the highest allocation, if they are to be
// printed and the first reading left out the calls.
func (p *postprocess) bounds() error {
	if p.env.heap == nil || p.env.calls {
		return nil
	}
	t, err := p.reopen()
	if err != nil {
		return err
	}
	env := p.env
	if err := readAll(p.environment(p.selected(t), false)); !isSyntax(err) {
		return err
	}
	env.bounds = p.env.bounds
	p.env = env
	return nil
}

// look reads only the environment of a trace. The result is valid even if the trace is cut.
func (p *postprocess) look(t *postprocTrace) (*environment, error) {
	var env environment
	env.begin(p.legacy, false)
	return &env, readAll(&environmentReader{ctx: p.ctx, src: t, env: &env, front: true})
}

// environment shows env the passing records, and lets it count frees.
func (p *postprocess) environment(src trace.Reader, count bool) trace.Reader {
	return &environmentReader{ctx: p.ctx, src: src, env: &p.env, front: true, count: count}
}

// selected returns the selected calls of a trace.
func (p *postprocess) selected(t *postprocTrace) trace.Reader {
	if p.chosen.Everything() {
		return t.Reader
	}
	s := filter.NewSelect(t, p.chosen)
	if p.choosesLeaks() {
		s.AllCalls, p.front = true, s
	}
	return s
}

// address applies --call-address to the mappings of the trace.
func (p *postprocess) address(env *environment) error {
	a, err := parseCallAddress(p.filters.Address)
	if err != nil {
		return err
	}
	start, end, ok := a.find(env.mappings, p.legacy)
	if !ok {
		return cli.WithHint(fmt.Errorf("%s: nothing is mapped from %s", p.in.name(), a.module),
			"rtrace postproc prints the mappings in lines that begin with ':'")
	}
	p.chosen.Addresses.Start, p.chosen.Addresses.End = start, end
	return nil
}

// choosesLeaks reports whether filters are applied to the leaks. The original looks for
// leaks only among the selected calls: a block leaks if its free is not among them. A free
// mostly is not, because it has no stack and another context.
func (p *postprocess) choosesLeaks() bool {
	return p.leaks && !p.legacy && p.chosen.Splits()
}

// readAll reads to the end and returns the error, nil for io.EOF.
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

// isSyntax reports whether an error is in the trace, and not in reading it.
func isSyntax(err error) bool {
	_, ok := errors.AsType[*trace.SyntaxError](err)
	return err == nil || ok
}

// write writes the output.
func (p *postprocess) write(c *postprocContent) error {
	out, err := p.create()
	if err != nil {
		return err
	}
	return out.finish(p.writeTo(out, c))
}

func (p *postprocess) writeTo(out *postprocOutput, c *postprocContent) error {
	if p.leaks && !p.legacy && slices.ContainsFunc(p.env.resources, func(r trace.Resource) bool { return r.Sampled }) {
		p.warning(errSamples)
	}
	p.env.filters(p.leaks, p.compress, p.resolve)
	if p.in.format != "text" {
		p.env.origin(p.legacy)
	}
	if err := p.env.write(out); err != nil {
		return err
	}
	var err error
	if c.groups != nil {
		err = p.writeGroups(out.text, c)
	} else {
		err = p.copy(out.Writer, p.named(c.calls))
	}
	if err != nil {
		return err
	}
	if out.text != nil {
		return p.writeSums(out.text, c)
	}
	return p.writeEnd(out)
}

// writeEnd writes the End of the input, if it was read that far.
func (p *postprocess) writeEnd(w trace.Writer) error {
	if p.end == nil || p.ending != nil {
		return nil
	}
	return w.WriteRecord(p.end)
}

// writeSums writes the end of a text, after the calls. The leak summary is last, as in the
// original. Readers compute it again, so a text is whole without it.
func (p *postprocess) writeSums(w *encoder.Writer, c *postprocContent) error {
	unmatched := p.env.unmatched()
	if c.leaks != nil && !p.chosen.Splits() {
		unmatched = c.leaks.Finder().Unmatched()
	}
	if unmatched > 0 && !p.legacy && !p.env.hadLeaks {
		if err := w.WriteUnmatched(unmatched); err != nil {
			return err
		}
	}
	if err := p.writeEnd(w); err != nil || c.leaks == nil {
		return err
	}
	return w.WriteLeaks(c.sums(p.env.resources, p.legacy))
}

// named adds names to the frames of src, if requested, like rtrace resolve -t elf. sp-rtrace
// records a mapping late, even at the end of the trace. An address that no mapping covers at
// the time of its use may thus be in a later mapping.
func (p *postprocess) named(src trace.Reader) trace.Reader {
	if !p.resolve {
		return src
	}
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

// copy writes the records after the environment: the calls, and the comments and losses
// between them.
func (p *postprocess) copy(w trace.Writer, src trace.Reader) error {
	sort := sorter{legacy: p.legacy}
	var rec trace.Record
	for n := 1; ; n++ {
		if err := src.ReadRecord(&rec); err != nil {
			if errors.Is(err, io.EOF) {
				return p.comments.write(w, nil)
			}
			if isSyntax(err) {
				p.ending = err
				return p.comments.write(w, nil)
			}
			return err
		}
		if n%interval == 0 && p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if rec.Kind == trace.KindEnd {
			p.end = rec.Clone()
			continue
		}
		if sort.environment(&rec) || p.env.regenerated(&rec) {
			continue
		}
		if err := p.comments.write(w, &rec); err != nil {
			return err
		}
		if err := w.WriteRecord(&rec); err != nil {
			return err
		}
	}
}

// interval is the number of records between two checks of the context.
const interval = 1 << 16

// verdict returns how complete the output is.
func (p *postprocess) verdict(n uint64) error {
	switch {
	case p.ending != nil:
		return cut(p.in.name(), p.ending)
	case p.legacy:
		return nil
	}
	return skipped(p.in.name(), n)
}
