package cfi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"rtrace-bpf/trace"
)

// maxIndexed is the most FDEs of an index. The largest programs have a third of that.
const maxIndexed = 1 << 21

// Index finds the FDE of an address.
type Index struct {
	fdes []FDE // by start
}

// NewIndex reads all entries of the sections. If some entries are broken, the error joins the
// errors of the first few, and the index holds all other entries. The index is nil if there are
// too many entries.
//
// Where functions overlap, an address belongs to the one that begins last, as in the search
// table that linkers make. If several begin at one address, it belongs to the first.
func NewIndex(sections ...*Section) (*Index, error) {
	const maxErrors = 8
	x := new(Index)
	var errs []error
	for _, s := range sections {
		for f, err := range s.FDEs {
			switch {
			case err == nil && len(x.fdes) == maxIndexed:
				return nil, s.fail(f.Offset, fmt.Errorf("frame descriptions: %w", trace.ErrLimit))
			case err == nil && f.Start < f.End:
				x.fdes = append(x.fdes, *f)
			case err != nil && len(errs) < maxErrors:
				errs = append(errs, err)
			}
		}
	}
	slices.SortStableFunc(x.fdes, func(a, b FDE) int { return cmp.Compare(a.Start, b.Start) })
	x.fdes = slices.CompactFunc(x.fdes, func(a, b FDE) bool { return a.Start == b.Start })
	return x, errors.Join(errs...)
}

// Len returns the number of FDEs.
func (x *Index) Len() int { return len(x.fdes) }

// Find returns the FDE that contains pc. It belongs to the index.
func (x *Index) Find(pc uint64) (*FDE, bool) {
	i, found := slices.BinarySearchFunc(x.fdes, pc, func(f FDE, pc uint64) int { return cmp.Compare(f.Start, pc) })
	if !found {
		i--
	}
	if i < 0 || pc >= x.fdes[i].End {
		return nil, false
	}
	return &x.fdes[i], true
}
