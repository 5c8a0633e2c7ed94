package record

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// sides holds records about the process until their place in the order of events comes.
type sides struct {
	waiting map[uint64]order.Side // by number
	count   uint64
}

// add adds the sides of a batch.
func (w *sides) add(all []order.Side) {
	for _, x := range all {
		w.waiting[w.count] = x
		w.count++
	}
}

// take returns the side with a number, and removes it.
func (w *sides) take(id uint64) (order.Side, bool) {
	x, ok := w.waiting[id]
	delete(w.waiting, id)
	return x, ok
}

// side handles the side with a number.
func (s *Stream) side(id uint64) {
	x, ok := s.sides.take(id)
	if !ok {
		return
	}
	r := trace.Record{Time: int64(x.Time), PID: int32(x.PID), TID: int32(x.TID)}
	switch x.Kind {
	case order.SideMap:
		s.mapped(x, r)
		return
	case order.SideTables:
		s.stacks.coverage.installed(x.Snapshot, x.Number+1)
		return
	case order.SideSnapshot:
		s.mappings.replace(x.Snapshot, x.Seen, x.Time)
		return
	case order.SideAudit:
		s.audit(x, r)
		return
	case order.SideName:
		if !s.threads.rename(x.TID, x.Name, x.Time) {
			return
		}
		r.Kind, r.Thread.Name = trace.KindThread, x.Name
	case order.SideThread:
		s.threads.made(x.TID, x.Parent, x.Time)
		return
	case order.SideMark:
		r.Kind, r.PID, r.Context.Name = trace.KindContext, s.program.pid, x.Name
	case order.SideExec:
		if r.Time < s.heads.last {
			s.late(r) // calls of the new program were recorded as those of the old one
		}
		s.exec(&x)
		r.Kind, r.Exec.Name = trace.KindExec, x.Name
	case order.SideExit:
		if s.program.loading && x.TID == x.PID {
			return // the kernel has closed the events of a set-user-ID program, which continues
		}
		s.threads.left(x.TID, x.Time)
		s.program.threadEnded(&x)
		s.functions.forget(x.TID)
		r.Kind, r.Exit.Process = trace.KindExit, false
	case order.SideWindow:
		r.Kind, r.PID, r.Window = trace.KindWindow, s.program.pid, x.Window
	case order.SideFork:
		s.Stats.Forks++
		return
	case order.SideWork:
		s.Stats.Work = x.Work
		return
	case order.SideDrops:
		s.lost(x.Reason, x.Lost, &r)
	case order.SideGap:
		if x.Reason == order.LossPaused {
			s.Stats.Paused += time.Duration(x.Time - x.Seen)
		}
		s.lost(x.Reason, 1, &r)
		r.Lost.Since = int64(x.Seen)
		s.calls.blocks.lost(&r)
	}
	s.out.emit(r)
}

// late counts a side that should have come before records already passed on. The kernel
// sets the time of such a record before it hands the record over, and its CPU may be
// taken away in between. Names, exits and forks may come late without a loss.
func (s *Stream) late(r trace.Record) {
	s.lost(order.LossLate, 1, &r)
	s.out.emit(r)
}

// exec drops what belonged to the old program.
func (s *Stream) exec(x *order.Side) {
	s.program.exec(x)
	s.threads.replaced(x.TID, x.Name, x.Time)
	s.mappings.clear(x.Time)
	s.stacks.coverage.replaced(x.Number)
	s.stacks.copies.forget()
	s.functions.clear()
	if s.pages != nil {
		s.pages.executed(x.Time)
	}
	s.calls.blocks.clear()
}

// mapped handles the record of a mapping. A record from before the baseline is ignored if
// the baseline has another mapping there: whether the recorded one still exists is not
// known.
func (s *Stream) mapped(x order.Side, r trace.Record) {
	s.program.loading = false
	s.stacks.coverage.mapped(x.Mapping, x.Number)
	s.stacks.copies.mapped(x.Mapping)
	if x.Time < s.program.baseline && s.mappings.seenSince(x.Mapping, s.program.baseline) {
		return
	}
	if s.mappings.add(x.Mapping, x.Time) && int64(x.Time) < s.heads.last && s.stacks.usedIn(x.Mapping, x.Time) {
		s.late(r)
	}
}

// audit compares the known mappings and threads with those of the process, after the
// kernel dropped records about them. The differences count as lost, and are known from
// here on.
func (s *Stream) audit(x order.Side, r trace.Record) {
	from := x.Seen
	if s.program.replaced >= from {
		return // at least a part was read from the old program; another audit follows
	}
	if len(x.Snapshot) == 0 {
		s.warn("the kernel dropped records about mappings and threads of process %d %s, and the process has ended: "+
			"stacks through what it mapped, and threads that it named in that time may lack their names. No call is missing",
			s.program.pid, s.program.between(x))
		s.lost(order.LossSideband, 1, &r)
	} else {
		maps := s.mappings.unknown(x.Snapshot, from)
		s.mappings.replace(x.Snapshot, from, x.Time)
		threads := s.threads.audit(x.Threads, from, x.Time)
		for _, t := range threads {
			s.out.emit(trace.Record{Kind: trace.KindThread, Time: r.Time, PID: r.PID, TID: int32(t.TID), Thread: trace.Thread{Name: t.Name}})
		}
		n := len(maps) + len(threads)
		if n == 0 {
			return
		}
		s.warn("the kernel dropped records about mappings and threads of process %d %s, and %s became known at the end of that time: "+
			"stacks through these mappings, and these threads may lack their names before. No call is missing",
			s.program.pid, s.program.between(x), differing(maps, threads))
		s.lost(order.LossSideband, uint64(n), &r)
	}
	r.Lost.Since = int64(x.Since)
	s.out.emit(r)
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
