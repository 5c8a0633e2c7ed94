package tracer

import (
	"bytes"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
)

// function makes a record of an event and says whether there is one. A return may end
// several calls: the further ones are queued, and own what they have.
func (s *stream) function(e *event, r *trace.Record) (made bool) {
	x, ok := s.called[e.addr]
	if !ok {
		return false
	}
	delete(s.called, e.addr)
	head := trace.Record{Time: int64(e.time), PID: s.pid, TID: int32(e.tid), CPU: int32(e.cpu) + 1}
	missed := 0
	switch {
	case x.Kind == functions.Entered && x.Function.Module != 0:
		missed = s.enterThing(e, &x)
	case x.Kind == functions.Entered:
		missed = s.calls.Enter(&x)
		made = s.describeNamed(&x, r, &head)
	case x.Kind == functions.Read:
		s.things.calls.Read(&x)
	case x.Kind == functions.Looked:
		made = s.describeNamed(&x, r, &head)
	case x.Kind == functions.Left:
		if s.things.recorder != nil {
			missed = s.leaveThing(e, new(x))
		}
		missed += s.calls.Leave(&x, func(x *functions.Event) {
			if !made {
				made = s.describeNamed(x, r, &head)
				return
			}
			r.Opaque.Data = bytes.Clone(r.Opaque.Data)
			var next trace.Record
			if s.describeNamed(x, &next, &head) {
				next.Opaque.Data = bytes.Clone(next.Opaque.Data)
				s.emit(next)
			}
		})
	}
	if missed > 0 {
		lost := head
		s.lost(LossMissedReturn, uint64(missed), &lost)
		s.emit(lost)
	}
	return made
}

// describeNamed fills r from an event and reports whether that makes a record.
func (s *stream) describeNamed(x *functions.Event, r, head *trace.Record) bool {
	r.Time, r.PID, r.TID, r.CPU = head.Time, head.PID, head.TID, head.CPU
	return s.describeCall(x, r)
}
