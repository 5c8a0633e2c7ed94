package nettrace

import (
	"slices"

	"rtrace-bpf/trace"
)

// maxWaiting is how many records are kept until a process is known.
const maxWaiting = 256

// prelude is the first records, until their process and time are known.
type prelude struct {
	waiting []trace.Record
	over    bool // the beginning of the stream is written
}

// keep reports whether a record waits, and keeps a copy of it.
func (p *prelude) keep(r *trace.Record) bool {
	rare := r.Kind != trace.KindCall && r.Kind != trace.KindEnd && rows[r.Kind].known
	if !rare || r.PID != 0 && r.Time != 0 || len(p.waiting) >= maxWaiting {
		return false
	}
	p.waiting = append(p.waiting, *r.Clone())
	return true
}

// end returns the header and the process of the stream and the records that waited, which
// are the caller's. next is the record after them, or nil, and time is its time.
func (p *prelude) end(next *trace.Record, time int64) (h trace.Header, pid int32, waiting []trace.Record) {
	waiting = p.waiting
	p.waiting, p.over = nil, true
	all := waiting
	if next != nil {
		all = append(all, *next)
	}
	for i := range all {
		r := &all[i]
		if pid == 0 {
			pid = r.PID
		}
		if r.Kind == trace.KindHeader && h == (trace.Header{}) {
			h = r.Header
		}
	}
	if h.WallTime == 0 && h.ClockTime == 0 { // an approximation
		i := slices.IndexFunc(all, func(r trace.Record) bool { return r.Kind == trace.KindProcess })
		if i >= 0 {
			h.WallTime, h.ClockTime = all[i].Process.WallTime, time
		}
	}
	return h, pid, waiting
}
