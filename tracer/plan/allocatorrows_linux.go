package plan

import (
	"rtrace-bpf/tracer/object"
)

// none marks an argument that a function does not have.
const none = -1

// Row describes a traced function of an allocator: what it does, and which of its
// arguments, counted from 0, hold its operands (docs/design/decisions.md, 33).
type Row struct {
	Symbol    string
	Name      string // canonical name, if that is not the symbol
	operation object.ProbeOperation
	size      int // the requested bytes
	count     int // the second factor of the size
	block     int // the block to free or to move; for opAllocOut the place for the new one
	alignment int // the alignment of the block, counted from 1; 0: no argument has it
}

// Operations of functions.
const (
	opAlloc    = object.ProbeOperationOPERATION_ALLOC
	opAllocOut = object.ProbeOperationOPERATION_ALLOC_OUT
	opFree     = object.ProbeOperationOPERATION_FREE
	OpRealloc  = object.ProbeOperationOPERATION_REALLOC
)

// MemoryModule lists the functions of the C library's allocator. If several have the same
// address, the first gives the name (docs/design/decisions.md, 15).
var MemoryModule = []Row{
	{Symbol: "malloc", operation: opAlloc, size: 0, count: none, block: none},
	{Symbol: "calloc", operation: opAlloc, size: 1, count: 0, block: none},
	{Symbol: "realloc", operation: OpRealloc, size: 1, count: none, block: 0},
	{Symbol: "reallocarray", operation: OpRealloc, size: 2, count: 1, block: 0},
	{Symbol: "free", operation: opFree, size: none, count: none, block: 0},
	{Symbol: "posix_memalign", operation: opAllocOut, size: 2, count: none, block: 0, alignment: 2},
	{Symbol: "aligned_alloc", operation: opAlloc, size: 1, count: none, block: none, alignment: 1},
	{Symbol: "memalign", operation: opAlloc, size: 1, count: none, block: none, alignment: 1},
	{Symbol: "valloc", operation: opAlloc, size: 0, count: none, block: none},
	{Symbol: "pvalloc", operation: opAlloc, size: 0, count: none, block: none},
}

// growthRow describes a function with which an allocator gets memory from the system. The
// BPF programs read its arguments by C's calling convention.
type growthRow struct {
	symbol    string
	operation object.ProbeOperation
}

// growthModule lists the functions with which the C library's allocator gets memory. mmap64
// is missing: on 64-bit machines it is the same function as mmap, and on 32-bit machines no
// allocator calls it.
var growthModule = []growthRow{
	{"sbrk", object.ProbeOperationOPERATION_SBRK},
	{"mmap", object.ProbeOperationOPERATION_MMAP},
	{"mprotect", object.ProbeOperationOPERATION_MPROTECT},
	{"mremap", object.ProbeOperationOPERATION_MREMAP},
}

// leavesAllocator lists the functions of the C library that an allocator calls when it
// gives up. The code that they reach does not belong to the allocator.
var leavesAllocator = []string{"__assert_fail", "abort"}

// returns reports whether the function's result is recorded.
func (r *Row) returns() bool { return r.operation != opFree }

// composed reports whether C libraries may implement the function with another one that
// they call by name: reallocarray with realloc; in musl, calloc with malloc and
// posix_memalign with aligned_alloc.
func (r *Row) composed() bool { return r.returns() && r.Symbol != "malloc" }

// arguments lists the arguments that a probe must read, except the alignment.
func (r *Row) arguments() []int {
	var args []int
	for _, a := range [...]int{r.size, r.count, r.block} {
		if a != none {
			args = append(args, a)
		}
	}
	return args
}
