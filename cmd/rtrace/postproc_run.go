package main

import (
	"errors"
	"io"
	"slices"

	encoder "rtrace-bpf/encoder/sptext"
	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// print is the whole run. With -l and -c the input is read once: what is needed
// of it is held. Otherwise it is read twice, as all that stands in front of the
// calls may be said anywhere in a trace. A text in legacy mode is held in memory:
// the original sorts it. What must be known to choose calls is one time more.
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

// postprocContent is what is printed behind the environment: calls, or groups
// and the other records.
type postprocContent struct {
	calls  trace.Reader
	leaks  *filter.Leaks // nil without -l
	chosen *chosenLeaks  // nil unless calls are chosen of the leaks
	groups *filter.Groups
	others []*trace.Record
	err    error // what the groups' input ended with, if that is not io.EOF
}

// ended returns the error that an input without any record ends with.
func (c *postprocContent) ended() error {
	if c.groups != nil {
		return c.err
	}
	var rec trace.Record
	return c.calls.ReadRecord(&rec)
}

// gather reads all of src, and so completes the environment.
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

// ahead reads the trace for what has to be known to choose calls, if there is
// such a thing, and opens it again.
// once says that it is to have its calls then.
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

// bounds reads the trace for the lowest and the highest allocation, if they are
// to be printed and were left out with the calls.
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
	env.low, env.high = p.env.low, p.env.high
	p.env = env
	return nil
}

// look reads the environment of a trace and nothing else. What it found is good
// if the trace is cut, too.
func (p *postprocess) look(t *postprocTrace) (*environment, error) {
	var env environment
	env.begin(p.legacy, false)
	return &env, readAll(&environmentReader{ctx: p.ctx, src: t, env: &env, front: true})
}

// environment lets env see what passes, and count frees.
func (p *postprocess) environment(src trace.Reader, count bool) trace.Reader {
	return &environmentReader{ctx: p.ctx, src: src, env: &p.env, front: true, count: count}
}

// selected is what is chosen of a trace.
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

// writeEnd writes the End of the input, if that was read up to it.
func (p *postprocess) writeEnd(w trace.Writer) error {
	if p.end == nil || p.ending != nil {
		return nil
	}
	return w.WriteRecord(p.end)
}

// writeSums writes what stands behind the calls of a text. The leak summary is the last,
// as in the original; readers make it anew, so that a text is whole without it.
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
	return w.WriteLeaks(p.sums(c))
}

// named gives the frames of src their names, if that is asked for, as rtrace resolve
// -t elf does. sp-rtrace finds out late about a mapping, or at the end of the trace: so the addresses
// that no mapping covers when they are used may lie in one of the later ones.
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

// copy writes what follows the environment: the calls, and between them the
// comments and losses.
func (p *postprocess) copy(w trace.Writer, src trace.Reader) error {
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
		if rec.Kind == trace.KindEnd {
			p.end = rec.Clone()
			continue
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
func (p *postprocess) verdict(n uint64) error {
	switch {
	case p.ending != nil:
		return cut(p.in.name(), p.ending)
	case p.legacy:
		return nil
	}
	return skipped(p.in.name(), n)
}
