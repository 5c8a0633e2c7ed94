package library

import (
	"cmp"
	"slices"
	"strings"

	"rtrace-bpf/trace"
)

// Mapped is a mapping and the time during which it existed.
type Mapped struct {
	PID     int32
	Mapping trace.Mapping
	// From and To are the times at which it appeared and disappeared, on the
	// trace's clock. To is 0 if it still existed at the end.
	From, To int64
}

// Maps follows the executable mappings of processes. Use [NewMaps] to create
// one.
type Maps struct {
	now  map[int32][]*Mapped // by process, in order of their starts, none overlapping
	gone []*Mapped
	keep bool
}

// NewMaps returns an empty Maps. If keep is set, it remembers mappings that are
// gone, for List.
func NewMaps(keep bool) *Maps { return &Maps{now: map[int32][]*Mapped{}, keep: keep} }

// Add processes a record. Records that do not change mappings are ignored.
func (m *Maps) Add(r *trace.Record) {
	switch r.Kind {
	case trace.KindMapping:
		c := &Mapped{PID: r.PID, Mapping: r.Mapping, From: r.Time}
		c.Mapping.Path = strings.Clone(r.Mapping.Path)
		m.end(r.PID, c.Mapping.Start, c.Mapping.End, r.Time)
		list := m.now[r.PID]
		i, _ := slices.BinarySearchFunc(list, c.Mapping.Start, byStart)
		m.now[r.PID] = slices.Insert(list, i, c)
	case trace.KindUnmapping:
		m.end(r.PID, r.Mapping.Start, r.Mapping.End, r.Time)
	case trace.KindExec:
		m.end(r.PID, 0, ^uint64(0), r.Time)
	}
}

func byStart(m *Mapped, start uint64) int { return cmp.Compare(m.Mapping.Start, start) }

// end removes the mappings that overlap a range.
func (m *Maps) end(pid int32, start, end uint64, now int64) {
	m.now[pid] = slices.DeleteFunc(m.now[pid], func(c *Mapped) bool {
		over := c.Mapping.Start < end && start < c.Mapping.End
		if over && m.keep {
			c.To = now
			m.gone = append(m.gone, c)
		}
		return over
	})
}

// Find returns the path of the file that is mapped at an address now.
func (m *Maps) Find(pid int32, addr uint64) (path string, ok bool) {
	list := m.now[pid]
	i, exact := slices.BinarySearchFunc(list, addr, byStart)
	if !exact {
		i--
	}
	if i < 0 || addr >= list[i].Mapping.End {
		return "", false
	}
	return list[i].Mapping.Path, true
}

// List returns all mappings in order of appearance, then of process and
// address. Mappings that are gone are included only if Maps keeps them.
func (m *Maps) List() []*Mapped {
	all := slices.Clone(m.gone)
	for _, list := range m.now {
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b *Mapped) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Mapping.Start, b.Mapping.Start))
	})
	return all
}
