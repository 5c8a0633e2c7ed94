package record

import (
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/order"
)

// activities makes records of activity events.
type activities struct {
	pid      int32
	waiting  map[uint64]activity.Event // by number, until their place in the order comes
	describe func(*activity.Event, *trace.Record) bool
}

// record fills r from an activity event and reports whether there is a record.
func (a *activities) record(e *order.Event, r *trace.Record) bool {
	x, ok := a.waiting[e.Addr]
	if !ok {
		return false
	}
	delete(a.waiting, e.Addr)
	r.Time, r.PID, r.TID, r.CPU = int64(e.Time), a.pid, int32(e.TID), int32(e.CPU)+1
	return a.describe(&x, r)
}
