package usage

import "rtrace-bpf/trace"

// Calls counts calls by what they did. A realloc is one call: one that has an old block
// and a new one is a realloc and nothing else, one of NULL is an allocation, and one that
// frees is a free.
type Calls struct {
	All         uint64 `json:"calls"`
	Allocations uint64 `json:"allocations"`
	Frees       uint64 `json:"frees"` // also of blocks that were not live
	Reallocs    uint64 `json:"reallocs"`
}

// Since returns how many there were since the given ones.
func (n Calls) Since(before Calls) Calls {
	return Calls{n.All - before.All, n.Allocations - before.Allocations, n.Frees - before.Frees, n.Reallocs - before.Reallocs}
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
