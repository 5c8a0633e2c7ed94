package record

import (
	"os"
	"slices"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/modules"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
)

// Resources turns calls of the functions of resource modules into records.
type Resources struct {
	recorder *modules.Recorder // nil if there are no resource modules
	calls    *functions.Calls
	program  process.FileID     // the process's program
	waiting  map[uint32]actions // by thread
	counts   []ResourceCount    // in the order of modules.Recorder.Resources
	first    uint32
	stacks   bool // calls have stacks

	allocators []process.FileID // files with allocators that are traced
	loader     process.FileID   // the dynamic loader, which is a part of the C library
}

// actions holds what a call did until its stack comes.
type actions struct {
	acts []modules.Act
	slot uint64
	cpu  uint16
}

// ResourceCount counts the allocations and frees of one type of resource.
type ResourceCount struct {
	Type          string
	Allocs, Frees uint64
}

// newResources returns the Resources for a plan. length returns the length of a text in
// the process's memory.
func newResources(p *plan.Plan, length func(addr uint64, unit int) (uint64, bool)) Resources {
	first := uint32(MemoryResource + 1)
	if p.Options.NoMemory {
		first = MemoryResource
	}
	t := Resources{calls: functions.NewCalls(os.Getpagesize()), waiting: map[uint32]actions{}, first: first, stacks: p.Options.Frames() > 0}
	if len(p.Options.Modules) == 0 {
		return t
	}
	t.recorder = modules.NewRecorder(p.Options.Modules, first, modules.Process{
		PID: p.Target.PID, Narrow: p.Target.Narrow(), Open: p.Open, Kind: p.Target.Descriptor,
		Length: length,
	})
	_, t.program = p.Target.LinkOrder()
	for i := range p.Layout.Loader {
		t.loader = p.Layout.Loader[i].ID
	}
	for i := range p.Target.Texts {
		t.allocators = append(t.allocators, p.Target.Texts[i].File)
	}
	for _, r := range t.recorder.Resources() {
		t.counts = append(t.counts, ResourceCount{Type: r.Type})
	}
	return t
}

// enterResource handles the entry of a call. missed is the number of missed returns.
func (s *Stream) enterResource(e *order.Event, x *functions.Event) (missed int) {
	s.unwaited(e)
	by := modules.Caller{Inner: s.inner(x)}
	missed = s.Resources.calls.Enter(x)
	by.Allocator = s.allocators(x.Caller)
	s.acted(e, x.Slot, s.Resources.recorder.Enter(x, by))
	return missed
}

// leaveResource handles the return of a call. missed is the number of missed returns.
func (s *Stream) leaveResource(e *order.Event, x *functions.Event) (missed int) {
	s.unwaited(e)
	var acts []modules.Act
	missed = s.Resources.calls.Leave(x, func(x *functions.Event) {
		acts = append(acts, s.Resources.recorder.Leave(x)...)
	})
	s.acted(e, x.Slot, acts)
	return missed
}

// acted keeps what a call did until its stack comes, which is the next event of the
// thread.
func (s *Stream) acted(e *order.Event, slot uint64, acts []modules.Act) {
	switch {
	case len(acts) == 0:
	case !s.Resources.stacks:
		s.act(e, acts, 0)
	default:
		s.Resources.waiting[e.TID] = actions{acts, slot, e.CPU}
	}
}

// unwaited records what a thread's last call did if its stack did not come.
func (s *Stream) unwaited(e *order.Event) {
	if w, ok := s.Resources.waiting[e.TID]; ok {
		delete(s.Resources.waiting, e.TID)
		s.act(e, w.acts, 0)
	}
}

// resourceStack handles the stack of a call.
func (s *Stream) resourceStack(e *order.Event) {
	w, ok := s.Resources.waiting[e.TID]
	if !ok {
		return // the call did nothing
	}
	delete(s.Resources.waiting, e.TID)
	stack := e.Stack
	if w.slot != e.Addr {
		stack = 0
	}
	s.act(e, w.acts, stack)
}

// flushResources records the calls that still wait for their stacks.
func (s *Stream) flushResources() {
	for tid, w := range s.Resources.waiting {
		s.act(&order.Event{Time: uint64(s.last), TID: tid, CPU: w.cpu}, w.acts, 0)
	}
	clear(s.Resources.waiting)
}

// act emits the records of what a call did.
func (s *Stream) act(e *order.Event, acts []modules.Act, stack uint64) {
	for i := range acts {
		a := &acts[i]
		at := *e
		at.PID, at.Stack = uint32(s.pid), stack
		if a.Op == trace.OpFree && !s.backtraceAll {
			at.Stack = 0
		}
		var r trace.Record
		s.change(&at, &r, a.Op)
		c := &r.Call
		c.Function, c.Resource, c.ID, c.Size, c.Args = a.Function, a.Resource, a.ID, a.Size, a.Args
		count := &s.Resources.counts[a.Resource-s.Resources.first]
		if a.Op == trace.OpFree {
			s.Stats.Frees++
			count.Frees++
		} else {
			s.Stats.Allocs++
			count.Allocs++
		}
		s.emit(r)
	}
}

// forget drops the open calls of a thread that has ended.
func (t *Resources) forget(tid uint32) {
	t.calls.Forget(tid)
	if t.recorder != nil {
		t.recorder.Forget(tid)
	}
}

// allocators reports whether addr is in the code of a library with a traced allocator.
func (s *Stream) allocators(addr uint64) bool {
	m := s.mappings.at(addr)
	return m != nil && m.ID() != s.Resources.program && slices.ContainsFunc(s.Resources.allocators, func(id process.FileID) bool { return id == m.ID() })
}

// inner reports whether a library made the call as a part of another call: the C library
// calls its own functions, and a library that replaces a function calls the original.
func (s *Stream) inner(x *functions.Event) bool {
	if owner := x.Function.Owner; owner != "" {
		return s.Resources.calls.Within(x.TID, func(entry *functions.Event) bool { return entry.Function.Owner == owner })
	}
	own, from := s.mappings.at(x.PC), s.mappings.at(x.Caller)
	if own == nil || from == nil {
		return false
	}
	if own.ID() == s.Resources.program {
		// All functions are in one file there.
		return s.Resources.calls.Within(x.TID, func(entry *functions.Event) bool { return entry.Function.Owner == "" })
	}
	if own.ID() == from.ID() || from.ID() == s.Resources.loader || s.Resources.calls.Continues(x) {
		return true
	}
	return s.Resources.calls.Within(x.TID, func(entry *functions.Event) bool {
		outer := s.mappings.at(entry.PC)
		return entry.Function == x.Function && outer != nil && outer.ID() == from.ID()
	})
}

// forgetResources drops all open calls, because the process has replaced its program.
func (s *Stream) forgetResources() {
	s.flushResources()
	s.Resources.calls.Clear()
	if s.Resources.recorder != nil {
		s.Resources.recorder.Executed()
	}
}
