package record

import (
	"bytes"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/order"
)

// function makes a record of a function event and reports whether r has it. A return may
// end several calls: the records of the others are queued, and own their data.
func (s *Stream) function(e *order.Event, r *trace.Record) (made bool) {
	x, ok := s.called[e.Addr]
	if !ok {
		return false
	}
	delete(s.called, e.Addr)
	head := trace.Record{Time: int64(e.Time), PID: s.pid, TID: int32(e.TID), CPU: int32(e.CPU) + 1}
	missed := 0
	switch {
	case x.Kind == functions.Entered && x.Function.Module != 0:
		missed = s.enterResource(e, &x)
	case x.Kind == functions.Entered:
		missed = s.calls.Enter(&x)
		made = s.describeFunction(&x, r, &head)
	case x.Kind == functions.Read:
		s.Resources.calls.Read(&x)
	case x.Kind == functions.Looked:
		made = s.describeFunction(&x, r, &head)
	case x.Kind == functions.Left:
		if s.Resources.recorder != nil {
			missed = s.leaveResource(e, new(x))
		}
		missed += s.calls.Leave(&x, func(x *functions.Event) {
			if !made {
				made = s.describeFunction(x, r, &head)
				return
			}
			r.Opaque.Data = bytes.Clone(r.Opaque.Data)
			var next trace.Record
			if s.describeFunction(x, &next, &head) {
				next.Opaque.Data = bytes.Clone(next.Opaque.Data)
				s.emit(next)
			}
		})
	}
	if missed > 0 {
		lost := head
		s.lost(order.LossMissedReturn, uint64(missed), &lost)
		s.emit(lost)
	}
	return made
}

// describeFunction fills r from an event and reports whether that makes a record.
func (s *Stream) describeFunction(x *functions.Event, r, head *trace.Record) bool {
	r.Time, r.PID, r.TID, r.CPU = head.Time, head.PID, head.TID, head.CPU
	return s.describeCall(x, r)
}
