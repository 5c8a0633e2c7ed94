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
	size      int // bytes wanted
	count     int // second factor of the size
	block     int // block that is freed or moved; for allocOut where to store the new one
	alignment int // what the block's address is a multiple of, counted from 1; 0: it is not asked for
}

// What functions do.
const (
	opAlloc    = object.ProbeOperationOPERATION_ALLOC
	opAllocOut = object.ProbeOperationOPERATION_ALLOC_OUT
	opFree     = object.ProbeOperationOPERATION_FREE
	OpRealloc  = object.ProbeOperationOPERATION_REALLOC
)

// MemoryModule is the C library's allocator. Where two functions have the same
// address, the first of them gives the name (docs/design/decisions.md, 15).
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

// growthRow describes a function by which an allocator gets memory from the
// system. The programs know the places of its arguments, which are those of C.
type growthRow struct {
	symbol    string
	operation object.ProbeOperation
}

// growthModule is what the C library's allocator calls. mmap64 is the same
// function wherever pointers have 64 bits; where they have 32, no allocator calls
// it.
var growthModule = []growthRow{
	{"sbrk", object.ProbeOperationOPERATION_SBRK},
	{"mmap", object.ProbeOperationOPERATION_MMAP},
	{"mprotect", object.ProbeOperationOPERATION_MPROTECT},
	{"mremap", object.ProbeOperationOPERATION_MREMAP},
}

// leavesAllocator are functions of the C library that an allocator calls when
// all is lost. What they reach is not the allocator.
var leavesAllocator = []string{"__assert_fail", "abort"}

// returns says whether the result of the function matters.
func (r *Row) returns() bool { return r.operation != opFree }

// composed says whether C libraries may make the function of another one, which they
// call by its name: reallocarray of realloc, and musl calloc of malloc and
// posix_memalign of aligned_alloc.
func (r *Row) composed() bool { return r.returns() && r.Symbol != "malloc" }

// arguments lists the arguments a probe must read.
func (r *Row) arguments() []int {
	var args []int
	for _, a := range [...]int{r.size, r.count, r.block} {
		if a != none {
			args = append(args, a)
		}
	}
	return args
}
