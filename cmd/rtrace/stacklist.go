package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// stackList collects the distinct stacks of a trace. They get their names after all records
// are read, because names may come late in a trace.
type stackList struct {
	kind     string
	resolver *resolve.Resolver
	framer   sites.Framer
	known    map[string]int // by what and frames
	all      []countedStack
	key      []byte
	sums     stacksReport
}

type countedStack struct {
	what            string
	call            bool // the stack of a call
	pid             int32
	frames          []uint64
	names           []string
	records, weight uint64
}

func newStackList(o *stacksOptions, r *resolve.Resolver) *stackList {
	return &stackList{kind: o.kind, resolver: r, framer: o.names.framer(r), known: make(map[string]int)}
}

// add adds a record.
func (l *stackList) add(r *trace.Record) {
	var (
		s      *trace.Stack
		weight uint64
	)
	switch r.Kind {
	case trace.KindCall:
		s, weight = &r.Call.Stack, r.Call.Size
	case trace.KindSample:
		s, weight = &r.Sample.Stack, r.Sample.Weight
	case trace.KindEvent:
		s = &r.Event.Stack
	default:
		l.resolver.Observe(r)
		return
	}
	if l.kind != "" && l.kind != r.Kind.String() {
		return
	}
	l.sums.Records++
	if len(s.Frames) == 0 {
		l.sums.Without++
		return
	}
	l.key = binary.LittleEndian.AppendUint32(appendWhat(l.key[:0], r), uint32(r.PID))
	what := len(l.key) - 4
	for _, f := range s.Frames {
		l.key = binary.LittleEndian.AppendUint64(l.key, f)
	}
	n, ok := l.known[string(l.key)]
	if !ok {
		n = len(l.all)
		l.known[string(l.key)] = n
		c := countedStack{what: string(l.key[:what]), call: r.Kind == trace.KindCall, pid: r.PID, frames: slices.Clone(s.Frames)}
		for _, name := range s.Names {
			c.names = append(c.names, strings.Clone(name))
		}
		l.all = append(l.all, c)
	}
	l.all[n].records++
	l.all[n].weight += weight
}

// appendWhat appends the text for a record with a stack.
func appendWhat(b []byte, r *trace.Record) []byte {
	switch r.Kind {
	case trace.KindCall:
		return fmt.Appendf(b, "%s %s", r.Call.Function, r.Call.Op)
	case trace.KindSample:
		return fmt.Appendf(b, "sample %s", r.Sample.Name)
	}
	if r.Event.Name == "" {
		return fmt.Appendf(b, "%s/%d", r.Event.Provider, r.Event.ID)
	}
	return fmt.Appendf(b, "%s/%s", r.Event.Provider, r.Event.Name)
}

// report names the frames of the top stacks; top 0 means all.
func (l *stackList) report(top int) *stacksReport {
	slices.SortStableFunc(l.all, func(a, b countedStack) int {
		return cmp.Or(cmp.Compare(b.records, a.records), cmp.Compare(b.weight, a.weight), cmp.Compare(a.what, b.what), slices.Compare(a.frames, b.frames))
	})
	if top > 0 && top < len(l.all) {
		l.all = l.all[:top]
	}
	out := l.sums
	out.Stacks = []stackGroup{}
	for i := range l.all {
		c := &l.all[i]
		g := stackGroup{What: c.what, PID: c.pid, Records: c.records, Weight: c.weight}
		for _, f := range l.named(c) {
			g.Frames = append(g.Frames, frameReport{fmt.Sprintf("%#x", f.Addr), f.String(), shownFrame(&f)})
		}
		out.Stacks = append(out.Stacks, g)
	}
	return &out
}

// named returns the frames of a stack, without the wrappers that a call begins with.
func (l *stackList) named(c *countedStack) []sites.Frame {
	stack := trace.Stack{Frames: c.frames, Names: c.names}
	if c.call {
		return l.framer.Append(nil, c.pid, &stack, &trace.Caller{}, 0)
	}
	var frames []sites.Frame
	for i := range c.frames {
		frames = l.framer.Step(frames, c.pid, &stack, i)
	}
	return frames
}
