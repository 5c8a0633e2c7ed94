package plan

import "slices"

// dialect is a known allocator: how it is recognised, and which functions it has in
// addition to those of C.
type dialect struct {
	kind   string   // its name
	marks  []string // functions that no other allocator has, without the prefix; one is enough
	prefix string   // marks and rows exist with this prefix only; "" if with any
	libc   bool     // it is part of a C library
	rows   []Row    // its own functions
}

// dialects are the known allocators. A static program may have the marks of several, so the
// C libraries' come last.
var dialects = []dialect{
	{kind: "jemalloc", marks: []string{"mallctl"}, rows: []Row{
		{Symbol: "mallocx", operation: opAlloc, size: 0, count: none, block: none},
		{Symbol: "rallocx", operation: OpRealloc, size: 1, count: none, block: 0},
		{Symbol: "dallocx", operation: opFree, size: none, count: none, block: 0},
		{Symbol: "sdallocx", operation: opFree, size: none, count: none, block: 0},
	}},
	{kind: "mimalloc", marks: []string{"malloc_aligned", "heap_malloc"}, prefix: "mi_", rows: []Row{
		{Symbol: "zalloc", operation: opAlloc, size: 0, count: none, block: none},
		{Symbol: "malloc_small", operation: opAlloc, size: 0, count: none, block: none},
		{Symbol: "zalloc_small", operation: opAlloc, size: 0, count: none, block: none},
		{Symbol: "mallocn", operation: opAlloc, size: 1, count: 0, block: none},
		{Symbol: "malloc_aligned", operation: opAlloc, size: 0, count: none, block: none},
		{Symbol: "zalloc_aligned", operation: opAlloc, size: 0, count: none, block: none},
		{Symbol: "calloc_aligned", operation: opAlloc, size: 1, count: 0, block: none},
		{Symbol: "realloc_aligned", operation: OpRealloc, size: 1, count: none, block: 0},
		{Symbol: "reallocn", operation: OpRealloc, size: 2, count: 1, block: 0},
		{Symbol: "rezalloc", operation: OpRealloc, size: 1, count: none, block: 0},
		{Symbol: "recalloc", operation: OpRealloc, size: 2, count: 1, block: 0},
		{Symbol: "free_size", operation: opFree, size: none, count: none, block: 0},
		{Symbol: "free_size_aligned", operation: opFree, size: none, count: none, block: 0},
		{Symbol: "free_aligned", operation: opFree, size: none, count: none, block: 0},
		{Symbol: "heap_malloc", operation: opAlloc, size: 1, count: none, block: none},
		{Symbol: "heap_zalloc", operation: opAlloc, size: 1, count: none, block: none},
		{Symbol: "heap_calloc", operation: opAlloc, size: 2, count: 1, block: none},
		{Symbol: "heap_malloc_aligned", operation: opAlloc, size: 1, count: none, block: none},
		{Symbol: "heap_realloc", operation: OpRealloc, size: 2, count: none, block: 1},
	}},
	{kind: "tcmalloc", marks: []string{"malloc_skip_new_handler"}, prefix: "tc_", rows: []Row{
		{Symbol: "malloc_skip_new_handler", operation: opAlloc, size: 0, count: none, block: none},
		{Symbol: "free_sized", operation: opFree, size: none, count: none, block: 0},
	}},
	{kind: "glibc", marks: []string{"gnu_get_libc_version", "__libc_memalign"}, libc: true},
	{kind: "musl", marks: []string{"__libc_malloc_impl", "__libc_start_main"}, libc: true},
}

// prefixes are put before the names of C by programs that have several allocators in one
// process. The first stands for no prefix.
var prefixes = []string{"", "je_", "_rjem_", "mi_", "tc_", "scalable_"}

// AllocatorKinds returns the names of the allocators that are recognised.
func AllocatorKinds() []string {
	var names []string
	for i := range dialects {
		names = append(names, dialects[i].kind)
	}
	return names
}

// recognise returns the dialect of the functions with a prefix in a file, or nil if the
// allocator is unknown.
func recognise(l *library, prefix string) *dialect {
	for i := range dialects {
		d := &dialects[i]
		with := prefix
		switch {
		case d.libc && prefix != "":
			continue
		case d.prefix != "" && prefix != "" && prefix != d.prefix:
			continue
		case d.prefix != "":
			with = d.prefix
		}
		if slices.ContainsFunc(d.marks, func(mark string) bool {
			_, ok := l.function(with + mark)
			return ok
		}) {
			return d
		}
	}
	return nil
}

// functionRows lists the functions that an allocator may have: those of C, then those of
// its dialect.
func functionRows(d *dialect, prefix string) []*Row {
	var all []*Row
	for i := range MemoryModule {
		all = append(all, &MemoryModule[i])
	}
	if d == nil || d.prefix != "" && d.prefix != prefix {
		return all
	}
	for i := range d.rows {
		all = append(all, &d.rows[i])
	}
	return all
}
