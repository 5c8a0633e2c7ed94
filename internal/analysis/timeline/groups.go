package timeline

import (
	"cmp"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/blocks"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Group is the allocations of one thread or one function. A block belongs to
// the one that allocated or last moved it, even if another frees it.
type Group struct {
	// Thread is the thread's id, or the format's substitute for it
	// (Call.Thread).
	Thread uint64
	// Frame is the function, without file and line. If its name is unknown, it
	// has the return address and whatever else is known.
	Frame     sites.Frame
	Allocated live.Amount
	Live      live.Amount // at the end
	AtPeak    live.Amount // after the event with the most live bytes
	Peak      uint64      // most live bytes at any time
}

// group is a Group in progress.
type group struct {
	Group
	// changed is the event of the last change of Live. If the peak lies between
	// it and the next change, Live is the amount at the peak.
	changed uint64
}

// groups holds all threads or all functions. A function is identified by its
// name or, without one, by its address.
type groups struct {
	all      []group
	numbers  map[uint64]uint32 // threads, or addresses of functions
	names    map[string]uint32
	lastID   uint64
	lastName string
	last     uint32 // 1 + the group of lastID or lastName
	framer   sites.Framer
	oneFrame []sites.Frame
}

func newGroups(framer sites.Framer) *groups {
	return &groups{numbers: make(map[uint64]uint32), names: make(map[string]uint32), framer: framer}
}

func (s *groups) add(g Group) uint32 {
	s.all = append(s.all, group{Group: g})
	return uint32(len(s.all) - 1)
}

// thread returns the number of the group of the thread that made a call.
func (s *groups) thread(r *trace.Record) uint32 {
	id := blocks.ThreadID(r)
	if s.last != 0 && s.lastID == id {
		return s.last - 1
	}
	n, ok := s.numbers[id]
	if !ok {
		n = s.add(Group{Thread: id})
		s.numbers[id] = n
	}
	s.lastID, s.last = id, n+1
	return n
}

// caller returns the number of the group of the function that made a call.
func (s *groups) caller(r *trace.Record) uint32 {
	c := &r.Call
	s.oneFrame = s.framer.Append(s.oneFrame[:0], r.PID, &c.Stack, &c.Caller, 1)
	var f sites.Frame
	if len(s.oneFrame) > 0 {
		f = s.oneFrame[0]
	}
	f.File, f.Line = "", 0
	if f.Function == "" {
		n, ok := s.numbers[f.Addr]
		if !ok {
			f.Module = strings.Clone(f.Module)
			n = s.add(Group{Frame: f})
			s.numbers[f.Addr] = n
		}
		return n
	}
	if s.last != 0 && s.lastName == f.Function {
		return s.last - 1
	}
	n, ok := s.names[f.Function]
	if !ok {
		f.Addr = 0
		f.Function, f.Module = strings.Clone(f.Function), strings.Clone(f.Module)
		n = s.add(Group{Frame: f})
		s.names[f.Function] = n
	}
	s.lastName, s.last = s.all[n].Frame.Function, n+1
	return n
}

// settle must be called before a group changes. It records the amount at the
// peak if the peak was since the last change.
func (g *group) settle(event uint64, total *Totals) {
	if total.PeakBytesEvent >= g.changed && total.PeakBytesEvent < event {
		g.AtPeak = g.Live
	}
	g.changed = event
}

func (s *groups) join(n uint32, size, event uint64, total *Totals) {
	g := &s.all[n]
	g.settle(event, total)
	g.Live.AddBlock(size)
	g.Allocated.AddBlock(size)
	g.Peak = max(g.Peak, g.Live.Bytes)
}

func (s *groups) leave(n uint32, size, event uint64, total *Totals) {
	g := &s.all[n]
	g.settle(event, total)
	g.Live.SubBlock(size)
}

// list returns the groups, those with the most bytes at the peak first.
func (s *groups) list(total *Totals) []Group {
	if s == nil {
		return nil
	}
	out := make([]Group, len(s.all))
	for i := range s.all {
		g := s.all[i]
		g.settle(total.Events+1, total)
		out[i] = g.Group
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(
			cmp.Compare(b.AtPeak.Bytes, a.AtPeak.Bytes), cmp.Compare(b.Allocated.Bytes, a.Allocated.Bytes),
			cmp.Compare(a.Frame.Function, b.Frame.Function), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Frame.Addr, b.Frame.Addr),
		)
	})
	return out
}

// Threads returns the sums of each thread, those with the most bytes at the
// peak first. It returns nil unless Options asked for them.
func (t *Timeline) Threads() []Group { return t.threads.list(&t.total) }

// Functions returns the sums of each function, as Threads does.
func (t *Timeline) Functions() []Group { return t.callers.list(&t.total) }
