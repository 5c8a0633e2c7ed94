package leak

import (
	"math/bits"

	"rtrace-bpf/trace"
)

// Sum is the amount that leaked of one resource.
type Sum struct {
	Resource trace.Resource
	Blocks   uint64
	Bytes    uint64
}

// Sums returns the sums of the kept allocations for each of the given
// resources, in their order. A resource that is listed twice has its sum twice.
// Calls of other resources are left out.
func (f *Finder) Sums(resources []trace.Resource) []Sum {
	totals := f.totals()
	sums := make([]Sum, len(resources))
	for i, r := range resources {
		sums[i] = totals[r.ID]
		sums[i].Resource = r
	}
	return sums
}

func (f *Finder) totals() map[uint32]Sum {
	totals := make(map[uint32]Sum)
	for _, calls := range f.calls.All() {
		for k := range calls.kept.All() {
			if k.ordinal == 0 || k.op != trace.OpAlloc {
				continue
			}
			t := totals[k.resource]
			t.Blocks++
			t.Bytes += k.size
			totals[k.resource] = t
		}
	}
	return totals
}

// LegacySums returns the numbers that the original post-processor prints
// instead of Sums. It adds up under the id of the resource less 1, and calls of
// unknown resources under 0, but reads the sum under the lowest set bit of the
// id: the numbers of the resources 1 and 2 are right, 3, 5, 7 … repeat those of
// 1, 4 has those of 3, and so on. If there is only one resource, its id counts
// as 1.
func (f *Finder) LegacySums(resources []trace.Resource) []Sum {
	const slots = 32 // length of the original's table
	alone := len(resources) == 1
	known := make(map[uint32]bool, len(resources))
	for _, r := range resources {
		known[r.ID] = true
	}
	var table [slots]Sum
	for id, t := range f.totals() {
		i := id - 1
		if !known[id] || alone {
			i = 0
		}
		if i < slots {
			table[i].Blocks += t.Blocks
			table[i].Bytes += t.Bytes
		}
	}
	sums := make([]Sum, len(resources))
	for i, r := range resources {
		slot := bits.TrailingZeros32(r.ID)
		if alone {
			slot = 0
		}
		if slot < slots {
			sums[i] = table[slot]
		}
		sums[i].Resource = r
	}
	return sums
}
