package record

import (
	"slices"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/modules"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// resources turns calls of the functions of resource modules into records.
type resources struct {
	pid          int32
	recorder     *modules.Recorder // nil if there are no resource modules
	open         *functions.Calls
	callers      callers
	waiting      map[uint32]actions // by thread
	counts       []ResourceCount    // in the order of modules.Recorder.Resources
	first        uint32             // number of the first resource
	stacks       bool               // calls have stacks
	backtraceAll bool               // frees, too
	heads        *heads
	out          *outbox
	stats        *Stats
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

// begin prepares for the resource modules of a plan. length returns the length of a text in
// the process's memory.
func (t *resources) begin(p *plan.Plan, length func(addr uint64, unit int) (uint64, bool)) {
	t.first, t.stacks, t.backtraceAll = MemoryResource+1, p.Options.Frames() > 0, p.Options.BacktraceAll
	if p.Options.NoMemory {
		t.first = MemoryResource
	}
	if len(p.Options.Modules) == 0 {
		return
	}
	t.recorder = modules.NewRecorder(p.Options.Modules, t.first, modules.Process{
		PID: p.Target.PID, Narrow: p.Target.Narrow(), Open: p.Open, Kind: p.Target.Descriptor,
		Length: length,
	})
	t.callers.begin(p)
	for _, r := range t.recorder.Resources() {
		t.counts = append(t.counts, ResourceCount{Type: r.Type})
	}
}

// enter handles the entry of a call. missed is the number of missed returns.
func (t *resources) enter(e *order.Event, x *functions.Event) (missed int) {
	t.unwaited(e)
	by := modules.Caller{Inner: t.callers.inner(x)}
	missed = t.open.Enter(x)
	by.Allocator = t.callers.allocator(x.Caller)
	t.acted(e, x.Slot, t.recorder.Enter(x, by))
	return missed
}

// leave handles the return of a call. missed is the number of missed returns.
func (t *resources) leave(e *order.Event, x *functions.Event) (missed int) {
	t.unwaited(e)
	var acts []modules.Act
	missed = t.open.Leave(x, func(x *functions.Event) {
		acts = append(acts, t.recorder.Leave(x)...)
	})
	t.acted(e, x.Slot, acts)
	return missed
}

// acted keeps what a call did until its stack comes, which is the next event of the
// thread.
func (t *resources) acted(e *order.Event, slot uint64, acts []modules.Act) {
	switch {
	case len(acts) == 0:
	case !t.stacks:
		t.act(e, acts, 0)
	default:
		t.waiting[e.TID] = actions{acts, slot, e.CPU}
	}
}

// unwaited records what a thread's last call did if its stack did not come.
func (t *resources) unwaited(e *order.Event) {
	if w, ok := t.waiting[e.TID]; ok {
		delete(t.waiting, e.TID)
		t.act(e, w.acts, 0)
	}
}

// stack handles the stack of a call.
func (t *resources) stack(e *order.Event) {
	w, ok := t.waiting[e.TID]
	if !ok {
		return // the call did nothing
	}
	delete(t.waiting, e.TID)
	stack := e.Stack
	if w.slot != e.Addr {
		stack = 0
	}
	t.act(e, w.acts, stack)
}

// flush records the calls that still wait for their stacks.
func (t *resources) flush() {
	for tid, w := range t.waiting {
		t.act(&order.Event{Time: uint64(t.heads.last), TID: tid, CPU: w.cpu}, w.acts, 0)
	}
	clear(t.waiting)
}

// act emits the records of what a call did.
func (t *resources) act(e *order.Event, acts []modules.Act, stack uint64) {
	for i := range acts {
		a := &acts[i]
		at := *e
		at.PID, at.Stack = uint32(t.pid), stack
		if a.Op == trace.OpFree && !t.backtraceAll {
			at.Stack = 0
		}
		var r trace.Record
		t.heads.fill(&at, &r, a.Op)
		c := &r.Call
		c.Function, c.Resource, c.ID, c.Size, c.Args = a.Function, a.Resource, a.ID, a.Size, a.Args
		count := &t.counts[a.Resource-t.first]
		if a.Op == trace.OpFree {
			t.stats.Frees++
			count.Frees++
		} else {
			t.stats.Allocs++
			count.Allocs++
		}
		t.out.emit(r)
	}
}

// forget drops the open calls of a thread that has ended.
func (t *resources) forget(tid uint32) {
	t.open.Forget(tid)
	if t.recorder != nil {
		t.recorder.Forget(tid)
	}
}

// clear drops all open calls, because the process has replaced its program.
func (t *resources) clear() {
	t.flush()
	t.open.Clear()
	if t.recorder != nil {
		t.recorder.Executed()
	}
}

// summary returns the counts up to now. The caller owns the result.
func (t *resources) summary() []ResourceCount { return slices.Clone(t.counts) }
