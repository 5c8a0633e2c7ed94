package aggregate

import (
	"iter"
	"slices"
	"strings"

	"rtrace-bpf/trace"
)

// Mappings holds what is or was mapped at the addresses of each process, to
// recognize stacks whose addresses have got another meaning. The zero Mappings is
// empty.
type Mappings struct {
	of map[int32][]region // by process, in the order of their addresses
}

// region is a mapping, or the rest of one of which a part was mapped again.
type region struct {
	start, end, base uint64
	path             string
}

// Limits of mappings. Beyond them, stacks through code that replaces other code
// at the same addresses count as the same.
const (
	maxRegions = 1 << 14 // of a process
	maxWork    = 1 << 28
)

// Add adds a mapping of a process and reports whether it replaces another one.
func (m *Mappings) Add(pid int32, mapping *trace.Mapping) (replaces bool) {
	return m.add(pid, region{mapping.Start, mapping.End, mapping.Base, mapping.Path})
}

func (m *Mappings) add(pid int32, x region) (replaces bool) {
	all := m.of[pid]
	if x.end <= x.start || len(all) >= maxRegions {
		return false
	}
	first := 0
	for first < len(all) && all[first].end <= x.start {
		first++
	}
	last := first
	var rests []region
	for ; last < len(all) && all[last].start < x.end; last++ {
		old := all[last]
		replaces = replaces || old.path != x.path || old.base != x.base
		if old.start < x.start {
			rests = append(rests, region{old.start, x.start, old.base, old.path})
		}
		if old.end > x.end {
			rests = append(rests, region{x.end, old.end, old.base, old.path})
		}
	}
	x.path = strings.Clone(x.path)
	at := 0
	for at < len(rests) && rests[at].start < x.start {
		at++
	}
	if m.of == nil {
		m.of = make(map[int32][]region)
	}
	m.of[pid] = slices.Replace(all, first, last, slices.Insert(rests, at, x)...)
	return replaces
}

// Drop removes the mappings of a process, or of all if pid is 0.
func (m *Mappings) Drop(pid int32) {
	if pid == 0 {
		m.of = nil
		return
	}
	delete(m.of, pid)
}

// mapped processes a new mapping. If it replaces another one, later calls
// through its addresses belong to other sites than earlier ones.
func (c *callSites) mapped(r *trace.Record) {
	m := &r.Mapping
	if !c.mappings.Add(r.PID, m) {
		return
	}
	for p, place := range c.placesIn(r.PID, m.Start, m.End) {
		for n := range p.numbers.Of(place) {
			*n = 0
		}
	}
}

// through yields the numbers of the sites of a process that have a frame in
// [start, end).
func (c *callSites) through(pid int32, start, end uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for p, place := range c.placesIn(pid, start, end) {
			for n := range p.numbers.Of(place) {
				if !yield(int(*n - 1)) {
					return
				}
			}
		}
	}
}

// placesIn yields the places of a process that have a frame in [start, end).
func (c *callSites) placesIn(pid int32, start, end uint64) iter.Seq2[*process, uint32] {
	return func(yield func(*process, uint32) bool) {
		for _, p := range c.processes.Concerned(pid) {
			for place := uint32(1); int(place) <= p.places.Len() && c.work < maxWork; place++ {
				frames := p.places.Frames(place)
				c.work += 1 + len(frames)
				// A return address may be the first one after the mapping.
				if slices.ContainsFunc(frames, func(a uint64) bool { return start < a && a <= end }) && !yield(p, place) {
					return
				}
			}
		}
	}
}
