// Package replay repeats the calls of a trace with another malloc. A [Builder]
// turns the calls into a [Program], [Prepare] compiles the C program that runs
// it (program/replay.c), and [Runner.Run] runs that with a given malloc
// library.
//
// # What is replayed
//
// The replay makes the calls of the memory resource by the first process that
// makes one. Each traced thread makes its calls in their order. A call on a
// block waits until the block's last allocation or move by another thread is
// done; there is no other order between threads, unless [OrderTrace] requests
// that of the trace. Blocks are kept in slots. A freed slot is first reused by
// the thread that freed its block, which requires no waiting. There are as many
// slots as blocks were live at the peak, and some more for each thread
// (slackPerThread). If these do not suffice, a thread takes over the slot that
// has been free for the longest time, once its free is done. So a thread cannot
// get ahead of the others without limit, and no thread waits for something that
// is later in the trace: there are no deadlocks.
//
// # The program's file
//
// The format is private to this package and the C program of the same version.
// All numbers are 64 bit and little-endian:
//
//	magic "rtreplay", version, number of threads, number of slots
//	for each thread: the number of its words
//	the words of each thread, the last of them END
//
// A word is a code (bits 0 to 3), a mark that others wait for it (4), a number
// (5 to 31) and a value (32 to 63). By code:
//
//	END              the thread is done
//	WAIT             until thread NUMBER is done with its first VALUE words
//	FREE             the block of slot NUMBER
//	MALLOC, CALLOC   VALUE bytes, into slot NUMBER
//	REALLOC          the block of slot NUMBER, or none, to VALUE bytes
//	MEMALIGN, POSIX_MEMALIGN, ALIGNED_ALLOC
//	                 VALUE bytes; one more word is the alignment
//
// For a size of 2^32-1 or more, VALUE is 2^32-1 and the next word is the size.
package replay
