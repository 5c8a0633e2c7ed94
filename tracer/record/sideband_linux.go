package record

import (
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// mapped handles the record of a mapping. A record from before the baseline is ignored if
// the baseline has another mapping there: whether the recorded one still exists is not
// known.
func (s *Stream) mapped(x order.Side, r trace.Record) {
	s.loading = false
	s.Coverage.mapped(x.Mapping, x.Number)
	s.copies.mapped(x.Mapping)
	if x.Time < s.baseline && s.mappings.seenSince(x.Mapping, s.baseline) {
		return
	}
	if s.mappings.add(x.Mapping, x.Time) && s.ranThrough(x.Mapping, x.Time) {
		s.late(r)
	}
}

// audit compares the known mappings and threads with those of the process, after the
// kernel dropped records about them. The differences count as lost, and are known from
// here on.
func (s *Stream) audit(x order.Side, r trace.Record) {
	from := x.Seen
	if s.replaced >= from {
		return // at least a part was read from the old program; another audit follows
	}
	if len(x.Snapshot) == 0 {
		s.warn("the kernel dropped records about mappings and threads of process %d %s, and the process has ended: "+
			"stacks through what it mapped, and threads that it named in that time may lack their names. No call is missing",
			s.pid, s.between(x))
		s.lost(order.LossSideband, 1, &r)
	} else {
		maps := s.mappings.unknown(x.Snapshot, from)
		s.mappings.replace(x.Snapshot, from, x.Time)
		threads := s.roster.audit(x.Threads, from, x.Time)
		for _, t := range threads {
			s.emit(trace.Record{Kind: trace.KindThread, Time: r.Time, PID: r.PID, TID: int32(t.TID), Thread: trace.Thread{Name: t.Name}})
		}
		n := len(maps) + len(threads)
		if n == 0 {
			return
		}
		s.warn("the kernel dropped records about mappings and threads of process %d %s, and %s became known at the end of that time: "+
			"stacks through these mappings, and these threads may lack their names before. No call is missing",
			s.pid, s.between(x), differing(maps, threads))
		s.lost(order.LossSideband, uint64(n), &r)
	}
	r.Lost.Since = int64(x.Since)
	s.emit(r)
}

// between returns the time in which records were dropped, in seconds of the trace.
func (s *Stream) between(x order.Side) string {
	seconds := func(time uint64) float64 { return float64(max(time, s.baseline)-s.baseline) / 1e9 }
	return fmt.Sprintf("from %.3f s to %.3f s of the trace", seconds(x.Since), seconds(x.Time))
}

// differing lists mappings and threads for a message, at most eight by name.
func differing(maps []process.Mapping, threads []proc.Thread) string {
	var names []string
	for _, m := range maps {
		name := printable.Name(m.Path)
		if name == "" {
			name = "code in no file"
		}
		names = append(names, fmt.Sprintf("%s at %#x", name, m.Start))
	}
	for _, t := range threads {
		names = append(names, fmt.Sprintf("thread %d (%s)", t.TID, printable.Name(t.Name)))
	}
	const most = 8
	if n := len(names); n > most {
		names = append(slices.Clip(names[:most]), fmt.Sprintf("%d more", n-most))
	}
	return strings.Join(names, ", ")
}
