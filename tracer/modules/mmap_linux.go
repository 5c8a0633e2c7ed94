package modules

import (
	"math"

	"golang.org/x/sys/unix"

	"rtrace-bpf/trace"
)

const (
	mapping = "mmap"
	heapEnd = "brk"
)

var (
	mmapSymbols = []string{"mmap", "mmap64"}
	mmapArgs    = "pxdddx"
)

// mmap is the module for memory that the program itself gets from the system. What allocators get
// is growth of the heap.
var mmap = Module{
	Name: "mmap", Desc: "memory mappings of the program itself", ownOnly: true,
	Resources: []trace.Resource{{Type: mapping, Desc: "memory mapping in bytes"}, {Type: heapEnd, Desc: "program break in bytes"}},
	rows: []row{
		{symbols: mmapSymbols, args: mmapArgs, result: 'p', ok: isMapped, does: []step{func(c *call) {
			addMapping(c, mapping, c.result(), c.word(1), hex("prot", 2), hex("flags", 3), decimal("fd", 4), long("offset", 5))
		}}},
		{symbols: []string{"munmap"}, args: "px", result: 'd', ok: zero, ends: unmaps, does: []step{unmapped}},
		{symbols: []string{"mremap"}, args: "pxxd", result: 'p', ok: isMapped, ends: remaps, does: []step{remapped}},
		{symbols: []string{"sbrk"}, args: "x", result: 'p', ok: isMapped, ends: shrinks, does: []step{moved}},
	},
}

// isMapped reports whether a call has returned something other than MAP_FAILED.
func isMapped(c *call) bool {
	return c.result() != math.MaxUint64 && (!c.narrow || c.result() != math.MaxUint32)
}

// remaps returns what mremap ends. With an old size of 0 it maps the same memory once more
// (mremap(2)) and ends nothing.
func remaps(c *call) []key {
	if c.word(1) == 0 {
		return nil
	}
	return regionsOf(c).keys(c.word(0), c.word(0)+roundUp(c.word(1)))
}

func remapped(c *call) {
	if c.word(1) != 0 && c.word(3)&unix.MREMAP_DONTUNMAP == 0 {
		unmapped(c)
	}
	addMapping(c, mapping, c.result(), c.word(2), long("old_address", 0), long("old_size", 1), hex("flags", 3))
}

// increment returns the argument of sbrk.
func increment(c *call) int64 {
	if c.narrow {
		return int64(int32(c.word(0)))
	}
	return int64(c.word(0))
}

// shrinks returns what sbrk ends. The end of the heap is then known only from what the program
// itself has added.
func shrinks(c *call) []key {
	rs := *regionsOf(c)
	if n := len(rs); increment(c) < 0 && n > 0 {
		end := rs[n-1].end
		return rs.keys(end-uint64(-increment(c)), end)
	}
	return nil
}

func moved(c *call) {
	switch n := increment(c); {
	case n > 0:
		start := c.result()
		unmap(c, start, start+uint64(n))
		regionsOf(c).put(region{start, start + uint64(n), c.number(c.module, heapEnd)})
		c.alloc(heapEnd, start, uint64(n))
	case n < 0:
		unmap(c, c.result()-uint64(-n), c.result())
	}
}
