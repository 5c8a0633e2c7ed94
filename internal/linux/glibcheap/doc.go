// Package glibcheap finds and reads the heap of the GNU C library in the memory of a process,
// from outside and while the process runs. It needs no debugging symbols.
//
// The main arena is found in the writable data of the library by its bins: a bin that is empty
// points to itself. Other arenas are at the start of heaps whose addresses are multiples of 64
// MiB. The blocks of each heap are walked by their sizes. Free blocks that the library does not
// mark as free are found through the fast bins of the arenas and the caches of threads, which
// are blocks themselves.
//
// Everything read is checked, because the process may change it at any moment or may want to
// mislead. What cannot be read is counted as such. The number of bytes that are read and the
// time are bounded.
//
// It knows 64-bit little-endian processes. Layouts: glibc 2.26 and later (malloc/malloc.c,
// malloc/arena.c); docs/design/explain.md lists which versions were tried.
package glibcheap
