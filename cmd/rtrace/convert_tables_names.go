package main

import (
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/dataset"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// tableNamer names stacks for tables, as the commands that print call sites do.
type tableNamer struct {
	resolver *resolve.Resolver
	framer   sites.Framer
	lines    *sites.Grouper
	modules  *sites.Grouper
	frames   []sites.Frame
}

var _ dataset.Namer = (*tableNamer)(nil)

func newTableNamer(n *nameFlags, r *resolve.Resolver) *tableNamer {
	g := groupFlags{names: *n, key: sites.ByLine}
	t := &tableNamer{resolver: r, framer: n.framer(r), lines: sites.NewGrouper(g.grouping(r))}
	g.key = sites.ByModule
	t.modules = sites.NewGrouper(g.grouping(r))
	return t
}

// Observe implements dataset.Namer.
func (t *tableNamer) Observe(r *trace.Record) { t.resolver.Observe(r) }

// Frames implements dataset.Namer.
func (t *tableNamer) Frames(dst []dataset.NamedFrame, r *trace.Record) []dataset.NamedFrame {
	stack := &r.Call.Stack
	if len(stack.Frames) == 0 {
		return append(dst, dataset.NamedFrame{Frame: sites.Frame{Place: t.framer.Caller(&r.Call.Caller)}})
	}
	for i, addr := range stack.Frames {
		var offset *int64
		m, ok := t.resolver.Process(r.PID).Mapping(addr)
		if ok && m.Placed {
			at := int64(addr - m.Start + m.Offset)
			offset = &at
		}
		t.frames = t.framer.Step(t.frames[:0], r.PID, stack, i)
		for k := range t.frames {
			f := &t.frames[k]
			dst = append(dst, dataset.NamedFrame{Frame: *f, BuildID: m.BuildID, Offset: offset, Wrapper: t.framer.Wrapper(f)})
		}
	}
	return dst
}

// Site implements dataset.Namer.
func (t *tableNamer) Site(r *trace.Record) (site sites.Frame, module string) {
	return t.lines.At(t.lines.Find(r)).Frames[0], t.modules.At(t.modules.Find(r)).Frames[0].Module
}
