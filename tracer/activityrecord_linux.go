package tracer

import (
	"rtrace-bpf/trace"
)

// activity makes a record of an event and says whether there is one.
func (s *stream) activity(e *event, r *trace.Record) bool {
	x, ok := s.activities[e.addr]
	if !ok {
		return false
	}
	delete(s.activities, e.addr)
	r.Time, r.PID, r.TID, r.CPU = int64(e.time), s.pid, int32(e.tid), int32(e.cpu)+1
	return s.describeActivity(&x, r)
}
