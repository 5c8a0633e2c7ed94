package record

import (
	"bytes"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/order"
)

// functionCalls makes records of calls of traced functions, and passes those of resource
// modules on.
type functionCalls struct {
	pid       int32
	waiting   map[uint64]functions.Event // by number, until their place in the order comes
	open      *functions.Calls
	describe  func(*functions.Event, *trace.Record) bool
	resources *resources
	out       *outbox
}

// record makes a record of a function event and reports whether r has it. A return may end
// several calls: the records of the others are queued, and own their data. missed is the
// number of missed returns.
func (f *functionCalls) record(e *order.Event, r *trace.Record) (made bool, missed int) {
	x, ok := f.waiting[e.Addr]
	if !ok {
		return false, 0
	}
	delete(f.waiting, e.Addr)
	head := f.head(e)
	switch {
	case x.Kind == functions.Entered && x.Function.Module != 0:
		missed = f.resources.enter(e, &x)
	case x.Kind == functions.Entered:
		missed = f.open.Enter(&x)
		made = f.fill(&x, r, &head)
	case x.Kind == functions.Read:
		f.resources.open.Read(&x)
	case x.Kind == functions.Looked:
		made = f.fill(&x, r, &head)
	case x.Kind == functions.Left:
		if f.resources.recorder != nil {
			missed = f.resources.leave(e, new(x))
		}
		missed += f.open.Leave(&x, func(x *functions.Event) {
			if !made {
				made = f.fill(x, r, &head)
				return
			}
			r.Opaque.Data = bytes.Clone(r.Opaque.Data)
			var next trace.Record
			if f.fill(x, &next, &head) {
				next.Opaque.Data = bytes.Clone(next.Opaque.Data)
				f.out.emit(next)
			}
		})
	}
	return made, missed
}

// head returns the time, the thread and the CPU of an event.
func (f *functionCalls) head(e *order.Event) trace.Record {
	return trace.Record{Time: int64(e.Time), PID: f.pid, TID: int32(e.TID), CPU: int32(e.CPU) + 1}
}

// fill fills r from an event and reports whether that makes a record.
func (f *functionCalls) fill(x *functions.Event, r, head *trace.Record) bool {
	r.Time, r.PID, r.TID, r.CPU = head.Time, head.PID, head.TID, head.CPU
	return f.describe(x, r)
}

// forget drops the open calls of a thread that has ended.
func (f *functionCalls) forget(tid uint32) {
	f.open.Forget(tid)
	f.resources.forget(tid)
}

// clear drops all open calls, because the process has replaced its program.
func (f *functionCalls) clear() {
	f.open.Clear()
	f.resources.clear()
}
