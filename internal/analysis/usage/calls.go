package usage

import "rtrace-bpf/trace"

// Calls counts calls by operation. A realloc is one call: with an old block and
// a new one it counts as a realloc only, of NULL as an allocation, and if it
// frees as a free.
type Calls struct {
	All         uint64 `json:"calls"`
	Allocations uint64 `json:"allocations"`
	Frees       uint64 `json:"frees"` // including those of blocks that were not live
	Reallocs    uint64 `json:"reallocs"`
}

// Since returns the number of calls since the given ones.
func (n Calls) Since(before Calls) Calls {
	return Calls{n.All - before.All, n.Allocations - before.Allocations, n.Frees - before.Frees, n.Reallocs - before.Reallocs}
}

// AddAll adds the calls of another trace.
func (n *Calls) AddAll(m Calls) {
	n.All += m.All
	n.Allocations += m.Allocations
	n.Frees += m.Frees
	n.Reallocs += m.Reallocs
}

// Add counts a call.
func (n *Calls) Add(c *trace.Call) {
	n.All++
	switch c.Op {
	case trace.OpAlloc:
		n.Allocations++
	case trace.OpFree:
		n.Frees++
	case trace.OpMove:
		if c.OldID == 0 {
			n.Allocations++
		} else {
			n.Reallocs++
		}
	}
}
