package record

import (
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
)

// activity makes a record of an event and says whether there is one.
func (s *Stream) activity(e *order.Event, r *trace.Record) bool {
	x, ok := s.activities[e.Addr]
	if !ok {
		return false
	}
	delete(s.activities, e.Addr)
	r.Time, r.PID, r.TID, r.CPU = int64(e.Time), s.pid, int32(e.TID), int32(e.CPU)+1
	return s.describeActivity(&x, r)
}
