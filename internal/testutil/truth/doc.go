// Package truth compares a trace with what the traced process says of itself: the
// log of testdata/progs/shim.c, a library for LD_PRELOAD between the program and
// its allocator.
//
// A trace is equal to the log, if for each thread its calls are those of the log in
// their order, each with the same operation, function, blocks and size, at a time
// while the call went on, and if in the order of the trace no block is ever
// allocated where one is live, nor freed or moved where none is. The projection
// of the log that is compared:
//
//   - A call without effect is not in a trace: one that fails, free(NULL).
//   - Functions at one address have the name of the first of them (Functions).
//   - realloc to size 0 that gives no block is a free by realloc. A move
//     whose old block was taken by another thread before it returned is a free and
//     an allocation. A realloc that took so long that the tracer did not
//     wait for it (200 ms) is, too, and if it failed after all, the same block
//     is allocated again.
//   - The call in which a thread was killed, by exec or the end of the
//     process, may be in the trace or not. There is one per thread at most,
//     and it is its last one.
//   - Calls of children of fork and vfork are not in the trace of the parent.
//
// What the log itself cannot know stands in shim.c.
package truth

// Functions are the names of what the shim logs, by the number in an entry and in
// the order in which functions at one address take their name.
var Functions = [...]string{
	"malloc", "calloc", "realloc", "reallocarray", "free",
	"posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc",
}
