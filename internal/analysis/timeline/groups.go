package timeline

import (
	"cmp"
	"slices"
	"strings"

	"rtrace-bpf/trace"
)

// Group is what one thread or one function allocated. A block belongs to who
// allocated or last moved it, whoever frees it.
type Group struct {
	Thread int32  // of threads
	Name   string // of functions; empty if unknown
	// Address is the return address of a function whose name is unknown; 0 if
	// that is unknown, too.
	Address   uint64
	Allocated Amount
	Live      Amount // at the end
	AtPeak    Amount // after the event at which most bytes were live
	Peak      uint64 // most bytes at any time
}

// group is a Group in the making.
type group struct {
	Group
	// changed is the event of the last change of Live. If the peak lies
	// between that and the next change, Live is what was live at the peak.
	changed uint64
}

// groups are all threads or all functions. A place is named by its function
// or, without a name, by its address.
type groups struct {
	all       []group
	threads   map[int32]uint32
	names     map[string]uint32
	addresses map[uint64]uint32
	lastTID   int32
	lastName  string
	last      uint32 // 1 + the group of lastTID or lastName
}

func newGroups() *groups {
	return &groups{threads: make(map[int32]uint32), names: make(map[string]uint32), addresses: make(map[uint64]uint32)}
}

func (s *groups) add(g Group) uint32 {
	s.all = append(s.all, group{Group: g})
	return uint32(len(s.all) - 1)
}

func (s *groups) thread(tid int32) uint32 {
	if s.last != 0 && s.lastTID == tid {
		return s.last - 1
	}
	n, ok := s.threads[tid]
	if !ok {
		n = s.add(Group{Thread: tid})
		s.threads[tid] = n
	}
	s.lastTID, s.last = tid, n+1
	return n
}

// caller returns the group of the function that made a call.
func (s *groups) caller(c *trace.Call) uint32 {
	name, address := Caller(c)
	if name == "" {
		n, ok := s.addresses[address]
		if !ok {
			n = s.add(Group{Address: address})
			s.addresses[address] = n
		}
		return n
	}
	if s.last != 0 && s.lastName == name {
		return s.last - 1
	}
	n, ok := s.names[name]
	if !ok {
		name = strings.Clone(name)
		n = s.add(Group{Name: name})
		s.names[name] = n
	}
	s.lastName, s.last = s.all[n].Name, n+1
	return n
}

// Caller returns the function that a call was made from: the one that the trace
// states, else the text of the innermost frame without its place, else no name
// and the frame's address. The name is borrowed from c.
func Caller(c *trace.Call) (name string, address uint64) {
	if c.Caller.Function != "" {
		return c.Caller.Function, 0
	}
	if len(c.Stack.Names) > 0 {
		text := c.Stack.Names[0]
		for _, end := range []string{" at ", " from "} {
			text, _, _ = strings.Cut(text, end)
		}
		text = strings.TrimSuffix(text, "()")
		if text != "" && !strings.HasPrefix(text, "in ??") && !strings.HasPrefix(text, "from ") {
			return text, 0
		}
	}
	if len(c.Stack.Frames) > 0 {
		return "", c.Stack.Frames[0]
	}
	return "", 0
}

// settle notes what was live at the peak if a group is about to change.
func (g *group) settle(event uint64, total *Totals) {
	if total.PeakBytesEvent >= g.changed && total.PeakBytesEvent < event {
		g.AtPeak = g.Live
	}
	g.changed = event
}

func (s *groups) join(n uint32, size, event uint64, total *Totals) {
	g := &s.all[n]
	g.settle(event, total)
	g.Live.add(size)
	g.Allocated.add(size)
	g.Peak = max(g.Peak, g.Live.Bytes)
}

func (s *groups) leave(n uint32, size, event uint64, total *Totals) {
	g := &s.all[n]
	g.settle(event, total)
	g.Live.sub(size)
}

// list returns the groups, those with most bytes at the peak first.
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
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Address, b.Address),
		)
	})
	return out
}

// Threads returns the sums of each thread, those with most bytes at the peak
// first; nil unless asked for in the Options.
func (t *Timeline) Threads() []Group { return t.threads.list(&t.total) }

// Functions returns the sums of each function, as Threads does.
func (t *Timeline) Functions() []Group { return t.callers.list(&t.total) }
