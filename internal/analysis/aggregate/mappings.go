package aggregate

import (
	"iter"
	"slices"
	"strings"

	"rtrace-bpf/trace"
)

// mappings holds what is or was mapped at the addresses of each process, to
// recognize stacks whose addresses have got another meaning.
type mappings struct {
	of   map[int32][]region // by process, in the order of their addresses
	work int                // words that were examined because of changes
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

// add adds a mapping and reports whether it replaces another one.
func (m *mappings) add(pid int32, x region) (replaces bool) {
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

// drop removes the mappings of a process, or of all if pid is 0.
func (m *mappings) drop(pid int32) {
	if pid == 0 {
		m.of = nil
		return
	}
	delete(m.of, pid)
}

// mapped processes a new mapping. If it replaces another one, later calls
// through its addresses belong to other sites than earlier ones.
func (e *Engine) mapped(r *trace.Record) {
	m := &r.Mapping
	if !e.mappings.add(r.PID, region{m.Start, m.End, m.Base, m.Path}) {
		return
	}
	for p, place := range e.placesIn(r.PID, m.Start, m.End) {
		for _, numbers := range p.numbers {
			if int(place) < len(numbers) {
				numbers[place] = 0
			}
		}
	}
}

// Through yields the numbers of the sites of a process whose stacks have an
// address in [start, end) and get no other meaning by a mapping that replaced
// another one. A caller that names frames must name these sites before it passes
// an unmapping or an exec on to its table of mappings. For an exec, start is 0
// and end is the largest number.
func (e *Engine) Through(pid int32, start, end uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for p, place := range e.placesIn(pid, start, end) {
			for _, numbers := range p.numbers {
				if int(place) < len(numbers) && numbers[place] != 0 && !yield(int(numbers[place]-1)) {
					return
				}
			}
		}
	}
}

// placesIn yields the places of a process that have a frame in [start, end).
func (e *Engine) placesIn(pid int32, start, end uint64) iter.Seq2[*process, uint32] {
	return func(yield func(*process, uint32) bool) {
		for _, p := range e.processes.Concerned(pid) {
			for place := uint32(1); int(place) <= p.places.Len() && e.mappings.work < maxWork; place++ {
				frames := p.places.Frames(place)
				e.mappings.work += 1 + len(frames)
				// A return address may be the first one after the mapping.
				if slices.ContainsFunc(frames, func(a uint64) bool { return start < a && a <= end }) && !yield(p, place) {
					return
				}
			}
		}
	}
}
