package tracer

import (
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/trace"
)

// mapped takes the record of a mapping. Of one from before the first mappings were read
// it is not known whether it is still there, if these have something in its place.
func (s *stream) mapped(x side, r trace.Record) {
	s.loading = false
	s.coverage.mapped(x.mapping, x.number)
	s.copies.mapped(x.mapping)
	if x.time < s.baseline && s.mappings.seenSince(x.mapping, s.baseline) {
		return
	}
	if s.mappings.add(x.mapping, x.time) && s.ranThrough(x.mapping, x.time) {
		s.late(r)
	}
}

// audit compares what is known of mappings and threads with what there is, after the
// kernel dropped records about them. What differs is lost, and known from here on.
func (s *stream) audit(x side, r trace.Record) {
	from := x.seen
	if s.replaced >= from {
		return // it was read of the program before, in part at least; another one follows
	}
	if len(x.snapshot) == 0 {
		s.warn("the kernel dropped records about mappings and threads of process %d %s, and the process has ended: "+
			"stacks through what it mapped, and threads that it named in that time may lack their names. No call is missing",
			s.pid, s.between(x))
		s.lost(LossSideband, 1, &r)
	} else {
		maps := s.mappings.unknown(x.snapshot, from)
		s.mappings.replace(x.snapshot, from, x.time)
		threads := s.roster.audit(x.threads, from, x.time)
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
		s.lost(LossSideband, uint64(n), &r)
	}
	r.Lost.Since = int64(x.since)
	s.emit(r)
}

// between says when records were dropped, on the clock of the trace.
func (s *stream) between(x side) string {
	seconds := func(time uint64) float64 { return float64(max(time, s.baseline)-s.baseline) / 1e9 }
	return fmt.Sprintf("from %.3f s to %.3f s of the trace", seconds(x.since), seconds(x.time))
}

// differing names mappings and threads, the first ones of many.
func differing(maps []mapping, threads []proc.Thread) string {
	var names []string
	for _, m := range maps {
		name := printable.Name(m.path)
		if name == "" {
			name = "code in no file"
		}
		names = append(names, fmt.Sprintf("%s at %#x", name, m.start))
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
