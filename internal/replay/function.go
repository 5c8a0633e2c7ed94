package replay

import (
	"math/bits"
	"strconv"

	"rtrace-bpf/trace"
)

// functions maps the names of traced functions to the calls that replay their
// allocations. All others are replayed as malloc.
var functions = map[string]code{
	"calloc":         codeCalloc,
	"realloc":        codeRealloc,
	"reallocarray":   codeRealloc,
	"memalign":       codeMemalign,
	"valloc":         codeMemalign,
	"pvalloc":        codeMemalign,
	"posix_memalign": codePosixMemalign,
	"aligned_alloc":  codeAlignedAlloc,
}

func codeOfFunction(name string) code {
	if c, ok := functions[name]; ok {
		return c
	}
	return codeMalloc
}

// Alignments of blocks, in bytes.
const (
	leastAlignment = 8       // smallest that posix_memalign accepts
	mostAlignment  = 1 << 30 // largest that is used
	pageAlignment  = 4096    // of valloc and pvalloc
	lineAlignment  = 64      // if the trace has none: a cache line, the usual reason
)

// alignment returns the alignment of a block: the recorded argument or, without
// one, a cache line, or less if the block's address was aligned to less.
func alignment(c *trace.Call) uint64 {
	if c.Function == "valloc" || c.Function == "pvalloc" {
		return pageAlignment
	}
	for _, a := range c.Args {
		switch a.Name {
		case "alignment", "boundary", "align":
			if n, err := strconv.ParseUint(a.Value, 0, 64); err == nil && n > 0 && n <= mostAlignment {
				return max(leastAlignment, uint64(1)<<bits.Len64(n-1))
			}
		}
	}
	return max(leastAlignment, min(lineAlignment, c.ID&-c.ID))
}
