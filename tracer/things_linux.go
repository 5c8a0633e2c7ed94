package tracer

import (
	"os"
	"slices"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/modules"
)

// things turns calls of the functions that modules know into records.
type things struct {
	recorder *modules.Recorder // nil: there are no modules
	calls    *functions.Calls
	program  fileID             // of the process
	waiting  map[uint32]actions // by thread
	counts   []ThingCount       // as modules.Recorder.Resources
	first    uint32
	stacks   bool // calls have one

	allocators []fileID // files with allocators that are traced
	loader     fileID   // the dynamic loader, which is a part of the C library
}

// actions wait for the stack of their call.
type actions struct {
	acts []modules.Act
	slot uint64
	cpu  uint16
}

// ThingCount is how many things of a kind a tracer has seen coming and going.
type ThingCount struct {
	Type          string
	Allocs, Frees uint64
}

// newThings returns the resources of a plan's modules. length returns how long a text of
// the process is.
func newThings(p *Plan, length func(addr uint64, unit int) (uint64, bool)) things {
	first := uint32(MemoryResource + 1)
	if p.options.NoMemory {
		first = MemoryResource
	}
	t := things{calls: functions.NewCalls(os.Getpagesize()), waiting: map[uint32]actions{}, first: first, stacks: p.options.frames() > 0}
	if len(p.options.Modules) == 0 {
		return t
	}
	t.recorder = modules.NewRecorder(p.options.Modules, first, modules.Process{
		PID: p.target.pid, Narrow: p.target.narrow(), Open: p.open, Kind: p.target.descriptor,
		Length: length,
	})
	_, t.program = p.target.linkOrder()
	for i := range p.debugger {
		t.loader = p.debugger[i].id
	}
	for i := range p.target.texts {
		t.allocators = append(t.allocators, p.target.texts[i].file)
	}
	for _, r := range t.recorder.Resources() {
		t.counts = append(t.counts, ThingCount{Type: r.Type})
	}
	return t
}

// enterThing takes a call that begins.
func (s *stream) enterThing(e *event, x *functions.Event) (missed int) {
	s.unwaited(e)
	by := modules.Caller{Inner: s.inner(x)}
	missed = s.things.calls.Enter(x)
	by.Allocator = s.allocators(x.Caller)
	s.acted(e, x.Slot, s.things.recorder.Enter(x, by))
	return missed
}

// leaveThing takes a return.
func (s *stream) leaveThing(e *event, x *functions.Event) (missed int) {
	s.unwaited(e)
	var acts []modules.Act
	missed = s.things.calls.Leave(x, func(x *functions.Event) {
		acts = append(acts, s.things.recorder.Leave(x)...)
	})
	s.acted(e, x.Slot, acts)
	return missed
}

// acted keeps what a call did until its stack comes, which is right behind it.
func (s *stream) acted(e *event, slot uint64, acts []modules.Act) {
	switch {
	case len(acts) == 0:
	case !s.things.stacks:
		s.act(e, acts, 0)
	default:
		s.things.waiting[e.tid] = actions{acts, slot, e.cpu}
	}
}

// unwaited tells what a thread's last call did if its stack did not come.
func (s *stream) unwaited(e *event) {
	if w, ok := s.things.waiting[e.tid]; ok {
		delete(s.things.waiting, e.tid)
		s.act(e, w.acts, 0)
	}
}

// thingStack takes the stack of a call.
func (s *stream) thingStack(e *event) {
	w, ok := s.things.waiting[e.tid]
	if !ok {
		return // of a call that did nothing
	}
	delete(s.things.waiting, e.tid)
	stack := e.stack
	if w.slot != e.addr {
		stack = 0
	}
	s.act(e, w.acts, stack)
}

// flushThings tells what is left at the end.
func (s *stream) flushThings() {
	for tid, w := range s.things.waiting {
		s.act(&event{time: uint64(s.last), tid: tid, cpu: w.cpu}, w.acts, 0)
	}
	clear(s.things.waiting)
}

// act makes records of what a call did.
func (s *stream) act(e *event, acts []modules.Act, stack uint64) {
	for i := range acts {
		a := &acts[i]
		at := *e
		at.pid, at.stack = uint32(s.pid), stack
		if a.Op == trace.OpFree && !s.backtraceAll {
			at.stack = 0
		}
		var r trace.Record
		s.change(&at, &r, a.Op)
		c := &r.Call
		c.Function, c.Resource, c.ID, c.Size, c.Args = a.Function, a.Resource, a.ID, a.Size, a.Args
		count := &s.things.counts[a.Resource-s.things.first]
		if a.Op == trace.OpFree {
			s.stats.Frees++
			count.Frees++
		} else {
			s.stats.Allocs++
			count.Allocs++
		}
		s.emit(r)
	}
}

// forget drops the open calls of a thread that has ended.
func (t *things) forget(tid uint32) {
	t.calls.Forget(tid)
	if t.recorder != nil {
		t.recorder.Forget(tid)
	}
}

// allocators says whether code is that of a library with an allocator that is traced.
func (s *stream) allocators(addr uint64) bool {
	m := s.mappings.at(addr)
	return m != nil && m.id() != s.things.program && slices.ContainsFunc(s.things.allocators, func(id fileID) bool { return id == m.id() })
}

// inner says whether a call is another one's doing: a library's of its own function,
// as the C library's where one of its functions calls another, or that of a library
// which stands in for it.
func (s *stream) inner(x *functions.Event) bool {
	if owner := x.Function.Owner; owner != "" {
		return s.things.calls.Within(x.TID, func(entry *functions.Event) bool { return entry.Function.Owner == owner })
	}
	own, from := s.mappings.at(x.PC), s.mappings.at(x.Caller)
	if own == nil || from == nil {
		return false
	}
	if own.id() == s.things.program {
		// All is in one file there.
		return s.things.calls.Within(x.TID, func(entry *functions.Event) bool { return entry.Function.Owner == "" })
	}
	if own.id() == from.id() || from.id() == s.things.loader || s.things.calls.Continues(x) {
		return true
	}
	return s.things.calls.Within(x.TID, func(entry *functions.Event) bool {
		outer := s.mappings.at(entry.PC)
		return entry.Function == x.Function && outer != nil && outer.id() == from.id()
	})
}

// forgetThings forgets everything: the process has become another program.
func (s *stream) forgetThings() {
	s.flushThings()
	s.things.calls.Clear()
	if s.things.recorder != nil {
		s.things.recorder.Executed()
	}
}
