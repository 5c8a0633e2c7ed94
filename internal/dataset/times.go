package dataset

import (
	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/trace"
)

// times converts the times of a trace.
type times struct {
	clock timeline.Clock
	first int64 // the first call's, on the trace's clock; 0 if unknown
}

// call returns the time of a call since the first one, and whether it is known.
func (t *times) call(at int64) (since int64, known bool) {
	since = t.clock.Elapsed(at)
	return since, at != 0 && t.clock.Begun()
}

// other returns the time of another record. It is negative before the first call.
func (t *times) other(at int64) (since int64, known bool) {
	switch {
	case at == 0 || t.first == 0:
		return 0, false
	case t.clock.Day:
		return t.clock.Since(at), true
	}
	return at - t.first, true
}

// header processes the header of a trace.
func (t *times) header(h *trace.Header) { t.clock.Day = h.Clock == trace.ClockDay }
