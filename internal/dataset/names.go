package dataset

import (
	"slices"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// Namer names the frames of stacks. It learns of mappings from records.
type Namer interface {
	// Observe processes a record that is no call.
	Observe(r *trace.Record)
	// Frames appends all frames of a call, the innermost first, wrappers included. A
	// call without a stack has its caller as its only frame.
	Frames(dst []NamedFrame, r *trace.Record) []NamedFrame
	// Site returns the call site of a call, as commands name it, and its module.
	Site(r *trace.Record) (site sites.Frame, module string)
}

// NamedFrame is a frame and what is known about its file.
type NamedFrame struct {
	sites.Frame
	BuildID string
	Offset  *int64 // of the address in the file; nil if unknown
	Wrapper bool
}

// naming is what names need: mappings and new stacks, in the order of the trace. Names are
// found at the end, because mappings and names of functions may come after the calls.
type naming struct {
	events []event
}

// event is a record about mappings, or a new stack, which is a call with a number.
type event struct {
	record *trace.Record
	stack  int64
}

// observe keeps a record about mappings.
func (n *naming) observe(r *trace.Record) {
	switch r.Kind {
	case trace.KindMapping, trace.KindUnmapping, trace.KindModule, trace.KindFunction, trace.KindExec:
		n.events = append(n.events, event{record: kept(r)})
	}
}

// stack keeps a new stack.
func (n *naming) stack(number int64, pid int32, s *trace.Stack, caller *trace.Caller) {
	r := (&trace.Record{Kind: trace.KindCall, PID: pid, Call: trace.Call{Op: trace.OpAlloc, Stack: *s, Caller: *caller}}).Clone()
	n.events = append(n.events, event{r, number})
}

// kept returns a copy of a record about mappings, without what earlier records left in it.
func kept(r *trace.Record) *trace.Record {
	return &trace.Record{
		Kind: r.Kind, Time: r.Time, PID: r.PID, TID: r.TID,
		Mapping: r.Mapping, Module: r.Module, Function: r.Function, Exec: r.Exec,
	}
}

// write names all stacks and writes them.
func (n *naming) write(id string, namer Namer, stacks *table[Stack], frames *table[Frame]) {
	for i := range n.events { // some come after the calls from there
		if r := n.events[i].record; r.Kind == trace.KindMapping || r.Kind == trace.KindModule || r.Kind == trace.KindFunction {
			namer.Observe(r)
		}
	}
	var all []NamedFrame
	for i := range n.events {
		e := &n.events[i]
		if e.stack == 0 {
			namer.Observe(e.record)
			continue
		}
		all = namer.Frames(all[:0], e.record)
		writeStack(id, e, namer, all, stacks)
		for at := range all {
			writeFrame(id, e.stack, at, &all[at], frames)
		}
	}
}

func writeStack(id string, e *event, namer Namer, all []NamedFrame, stacks *table[Stack]) {
	s := &e.record.Call.Stack
	site, module := namer.Site(e.record)
	row := stacks.add()
	*row = Stack{
		Trace: id, Stack: e.stack, PID: e.record.PID, Depth: int32(len(s.Frames)), End: s.End.String(), Reason: s.Reason,
		FramePointer: s.FramePointer, Site: site.String(), Function: site.Function, File: site.File, Line: int64(site.Line), Module: module,
	}
	if at := slices.IndexFunc(all, func(f NamedFrame) bool { return f.Module == module }); at >= 0 && module != "" {
		row.BuildID = all[at].BuildID
	}
}

func writeFrame(id string, stack int64, at int, f *NamedFrame, frames *table[Frame]) {
	row := frames.add()
	*row = Frame{
		Trace: id, Stack: stack, Position: int32(at), Address: int64(f.Addr), Function: f.Function, File: f.File, Line: int64(f.Line),
		Module: f.Module, BuildID: f.BuildID, Inlined: f.Inlined, Wrapper: f.Wrapper,
	}
	if f.Offset != nil {
		row.Offset = frames.number(*f.Offset)
	}
}
