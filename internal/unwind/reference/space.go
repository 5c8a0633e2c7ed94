package reference

import (
	"cmp"
	"fmt"
	"slices"

	"rtrace-bpf/internal/unwind/cfi"
)

// Module is the executable mapping that contains an address.
type Module struct {
	Index *cfi.Index // of the mapped file; nil if it has none, as for JIT code
	Bias  uint64     // address in memory minus address in the file
}

// Modules are the executable mappings of a process.
type Modules interface {
	// Find returns the mapping that contains pc.
	Find(pc uint64) (m Module, ok bool)
}

// Mapping is executable memory from Start up to End.
type Mapping struct {
	Start, End uint64
	Module     Module
}

// Space is the executable mappings of a process at one time. The zero Space is empty.
type Space struct {
	mappings []Mapping // in order, not overlapping
}

// NewSpace returns the space of the given mappings, in any order. They must not overlap.
// NewSpace keeps no reference to the slice.
func NewSpace(mappings []Mapping) (*Space, error) {
	all := slices.Clone(mappings)
	slices.SortFunc(all, func(a, b Mapping) int { return cmp.Compare(a.Start, b.Start) })
	for i := range all {
		if m := &all[i]; m.End <= m.Start || i > 0 && m.Start < all[i-1].End {
			return nil, fmt.Errorf("mapping %#x-%#x is empty or overlaps another one", m.Start, m.End)
		}
	}
	return &Space{mappings: all}, nil
}

// Find implements [Modules].
func (s *Space) Find(pc uint64) (Module, bool) {
	i, _ := slices.BinarySearchFunc(s.mappings, pc, func(m Mapping, pc uint64) int {
		if m.End <= pc {
			return -1
		}
		return 1 // the first mapping that ends after pc
	})
	if i == len(s.mappings) || pc < s.mappings[i].Start {
		return Module{}, false
	}
	return s.mappings[i].Module, true
}
