package tracer

import "slices"

// dialect is a known allocator: what it is recognised by, and the functions that
// it has beside those of C.
type dialect struct {
	kind   string
	marks  []string // functions that it alone has, behind its prefix
	prefix string   // only with this one, for marks and rows
	libc   bool     // it is part of a C library
	rows   []row
}

// dialects are the known allocators. Static programs have the marks of several:
// the C library's allocator comes last.
var dialects = []dialect{
	{kind: "jemalloc", marks: []string{"mallctl"}, rows: []row{
		{symbol: "mallocx", operation: opAlloc, size: 0, count: none, block: none},
		{symbol: "rallocx", operation: opRealloc, size: 1, count: none, block: 0},
		{symbol: "dallocx", operation: opFree, size: none, count: none, block: 0},
		{symbol: "sdallocx", operation: opFree, size: none, count: none, block: 0},
	}},
	{kind: "mimalloc", marks: []string{"malloc_aligned", "heap_malloc"}, prefix: "mi_", rows: []row{
		{symbol: "zalloc", operation: opAlloc, size: 0, count: none, block: none},
		{symbol: "malloc_small", operation: opAlloc, size: 0, count: none, block: none},
		{symbol: "zalloc_small", operation: opAlloc, size: 0, count: none, block: none},
		{symbol: "mallocn", operation: opAlloc, size: 1, count: 0, block: none},
		{symbol: "malloc_aligned", operation: opAlloc, size: 0, count: none, block: none},
		{symbol: "zalloc_aligned", operation: opAlloc, size: 0, count: none, block: none},
		{symbol: "calloc_aligned", operation: opAlloc, size: 1, count: 0, block: none},
		{symbol: "realloc_aligned", operation: opRealloc, size: 1, count: none, block: 0},
		{symbol: "reallocn", operation: opRealloc, size: 2, count: 1, block: 0},
		{symbol: "rezalloc", operation: opRealloc, size: 1, count: none, block: 0},
		{symbol: "recalloc", operation: opRealloc, size: 2, count: 1, block: 0},
		{symbol: "free_size", operation: opFree, size: none, count: none, block: 0},
		{symbol: "free_size_aligned", operation: opFree, size: none, count: none, block: 0},
		{symbol: "free_aligned", operation: opFree, size: none, count: none, block: 0},
		{symbol: "heap_malloc", operation: opAlloc, size: 1, count: none, block: none},
		{symbol: "heap_zalloc", operation: opAlloc, size: 1, count: none, block: none},
		{symbol: "heap_calloc", operation: opAlloc, size: 2, count: 1, block: none},
		{symbol: "heap_malloc_aligned", operation: opAlloc, size: 1, count: none, block: none},
		{symbol: "heap_realloc", operation: opRealloc, size: 2, count: none, block: 1},
	}},
	{kind: "tcmalloc", marks: []string{"malloc_skip_new_handler"}, prefix: "tc_", rows: []row{
		{symbol: "malloc_skip_new_handler", operation: opAlloc, size: 0, count: none, block: none},
		{symbol: "free_sized", operation: opFree, size: none, count: none, block: 0},
	}},
	{kind: "glibc", marks: []string{"gnu_get_libc_version", "__libc_memalign"}, libc: true},
	{kind: "musl", marks: []string{"__libc_malloc_impl", "__libc_start_main"}, libc: true},
}

// prefixes are put before the names of C by those who have several allocators in
// one process; the first is for none.
var prefixes = []string{"", "je_", "_rjem_", "mi_", "tc_", "scalable_"}

// AllocatorKinds returns the names of the allocators that are recognised.
func AllocatorKinds() []string {
	var names []string
	for i := range dialects {
		names = append(names, dialects[i].kind)
	}
	return names
}

// recognise returns the dialect of the functions of a file with a prefix, nil if
// it is none that is known.
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

// functionRows lists the functions that an allocator may have, those of C first.
func functionRows(d *dialect, prefix string) []*row {
	var all []*row
	for i := range memoryModule {
		all = append(all, &memoryModule[i])
	}
	if d == nil || d.prefix != "" && d.prefix != prefix {
		return all
	}
	for i := range d.rows {
		all = append(all, &d.rows[i])
	}
	return all
}
