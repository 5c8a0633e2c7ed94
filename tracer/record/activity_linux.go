package record

import (
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
)

// activity fills r from an activity event and reports whether there is a record.
func (s *Stream) activity(e *order.Event, r *trace.Record) bool {
	x, ok := s.activities[e.Addr]
	if !ok {
		return false
	}
	delete(s.activities, e.Addr)
	r.Time, r.PID, r.TID, r.CPU = int64(e.Time), s.pid, int32(e.TID), int32(e.CPU)+1
	return s.describeActivity(&x, r)
}
