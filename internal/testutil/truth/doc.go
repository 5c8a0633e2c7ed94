// Package truth compares a trace with a log of the traced process's own calls. The log is
// written by testdata/progs/shim.c, a library for LD_PRELOAD between the program and its
// allocator.
//
// A trace equals the log if two conditions hold. For each thread, its calls are those of the
// log in the same order; each has the same operation, function, blocks and size, and a time
// within the call. And in the order of the trace, no block is ever allocated where one is live,
// nor freed or moved where none is. The log is first projected to what a trace contains:
//
//   - A call without effect is not in a trace: one that fails, free(NULL).
//   - Functions at one address have the name of the first of them (Functions).
//   - realloc to size 0 that returns no block is a free by realloc. A move
//     whose old block was taken by another thread before it returned is a free and
//     an allocation. So is a realloc that took so long that the tracer did not
//     wait for it (200 ms). If that failed after all, the same block is allocated
//     again.
//   - The call in which a thread was killed, by exec or the end of the
//     process, may be in the trace or not. There is at most one per thread,
//     and it is the thread's last one.
//   - Calls of children of fork and vfork are not in the trace of the parent.
//
// The comment of shim.c lists what the log itself cannot contain.
package truth

// Functions holds the names of the functions that the shim logs. The index is the number in an
// entry; it is also the order in which functions at one address take their name.
var Functions = [...]string{
	"malloc", "calloc", "realloc", "reallocarray", "free",
	"posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc",
}
