/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of this directory share: the gate at which a test holds them, a ledger of
 * the calls that they make, and output that does not allocate. The ledger is the ground truth
 * that a trace is compared with.
 *
 * Output, on standard output, at the end:
 *
 *	call TID OP OLD PTR SIZE FUNCTION	one line per call, in the order of
 *						the thread, if the program logs;
 *						followed by @CALLER:LINE if
 *						it knows where it made it
 *	{"pid":...}				one line of JSON: the counts
 *
 * OP is what the call did: alloc, free, move, or none for a call that failed
 * or did nothing (free(NULL)). OLD and PTR are in hexadecimal, 0 for none. SIZE
 * is what was asked for, 0 for a free.
 */
#ifndef PROG_H
#define PROG_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALWAYS_INLINE inline __attribute__((always_inline, unused))
#define NOINLINE __attribute__((noinline))

/* Descriptors of the gate. */
enum { GATE_READY = 3, GATE_GO = 4 };

/* is_gate reports whether fd is a pipe that was opened for the given access. */
static ALWAYS_INLINE int is_gate(int fd, int access)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) == access && fstat(fd, &st) == 0 &&
	       S_ISFIFO(st.st_mode);
}

/* read_byte waits for a byte or the end of file on fd; it returns 1 or 0. */
static ALWAYS_INLINE int read_byte(int fd)
{
	char c;
	ssize_t n;

	do
		n = read(fd, &c, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

static ALWAYS_INLINE void write_all(int fd, const char *s, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, s, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			_exit(99);
		s += done;
		n -= (size_t)done;
	}
}

/*
 * gate writes "ready" and waits for a byte. Without the two pipes (a program started by hand) it
 * does nothing. If the other end closes instead, the test that holds the program is gone, and the
 * program ends.
 */
static ALWAYS_INLINE void gate(void)
{
	if (!is_gate(GATE_READY, O_WRONLY) || !is_gate(GATE_GO, O_RDONLY))
		return;
	write_all(GATE_READY, "ready\n", 6);
	if (!read_byte(GATE_GO))
		_exit(98);
}

/* die prints an error and ends the program. */
static __attribute__((format(printf, 1, 2), noreturn, unused)) void die(const char *format, ...)
{
	char line[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (n < 0)
		n = 0;
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	write_all(STDERR_FILENO, line, (size_t)n);
	_exit(97);
}

/* out_buffer holds what was not yet written to standard output. */
enum { OUT_LONGEST = 8192 };
static char out_buffer[1 << 16];
static size_t out_length;

static ALWAYS_INLINE void out_flush(void)
{
	write_all(STDOUT_FILENO, out_buffer, out_length);
	out_length = 0;
}

/* out prints formatted text; only %s, %d, %lu, %lx and similar, which do not allocate. */
static __attribute__((format(printf, 1, 2), unused)) void out(const char *format, ...)
{
	va_list args;
	int n;

	if (sizeof(out_buffer) - out_length < OUT_LONGEST)
		out_flush();
	va_start(args, format);
	n = vsnprintf(out_buffer + out_length, OUT_LONGEST, format, args);
	va_end(args);
	if (n < 0 || n >= OUT_LONGEST)
		die("output of %d bytes at once", n);
	out_length += (size_t)n;
}

/* park blocks a thread that has finished until the program ends. */
static ALWAYS_INLINE void *park(void)
{
	while (1)
		pause();
	return NULL;
}

/* number parses an argument of the command line. */
static ALWAYS_INLINE unsigned long number(const char *text)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 0);
	if (errno || end == text || *end)
		die("bad number '%s'", text);
	return n;
}

enum op { OP_NONE, OP_ALLOC, OP_FREE, OP_MOVE };

static const char *const op_names[] __attribute__((unused)) = { "none", "alloc", "free", "move" };

enum function {
	FN_MALLOC,
	FN_CALLOC,
	FN_REALLOC,
	FN_REALLOCARRAY,
	FN_FREE,
	FN_POSIX_MEMALIGN,
	FN_ALIGNED_ALLOC,
	FN_MEMALIGN,
	FN_VALLOC,
	FN_PVALLOC,
	FN_STRDUP,
	FN_NEW,
	FN_DELETE,
	FN_COUNT
};

static const char *const function_names[] __attribute__((unused)) = {
	"malloc",	  "calloc",	   "realloc",	      "reallocarray", "free",
	"posix_memalign", "aligned_alloc", "memalign",	      "valloc",	      "pvalloc",
	"strdup",	  "operator new",  "operator delete",
};

struct call {
	uint64_t old;
	uint64_t ptr;
	uint64_t size;
	uint32_t function;
	uint32_t op;
	const char *caller; /* function that made the call, if the program logs it */
	uint32_t line;
};

/* A ledger is the account of one thread. Without calls it only counts. */
struct ledger {
	pid_t tid;
	uint64_t done[FN_COUNT]; /* calls */
	uint64_t bytes[FN_COUNT]; /* requested by the calls that returned a block */
	uint64_t ops[4];
	struct call *calls;
	size_t length, capacity;
};

static ALWAYS_INLINE pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* ledger_open gives l room for a log of n calls, in memory that is not the heap's. */
static ALWAYS_INLINE void ledger_open(struct ledger *l, size_t n)
{
	void *p;

	if (n == 0)
		return;
	p = mmap(NULL, n * sizeof(struct call), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		die("no memory for a log of %zu calls", n);
	l->calls = (struct call *)p;
	l->capacity = n;
}

/* new_ledgers returns n empty ledgers, in memory that is not the heap's. */
static ALWAYS_INLINE struct ledger *new_ledgers(size_t n)
{
	void *p = mmap(NULL, n * sizeof(struct ledger), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("no memory for %zu ledgers", n);
	return (struct ledger *)p;
}

static ALWAYS_INLINE void note(struct ledger *l, enum function f, enum op op, uintptr_t old,
			       uintptr_t ptr, size_t size)
{
	l->done[f]++;
	l->ops[op]++;
	if (op == OP_ALLOC || op == OP_MOVE)
		l->bytes[f] += size;
	if (!l->calls)
		return;
	if (l->length == l->capacity)
		die("log of thread %d is full", (int)l->tid);
	l->calls[l->length].old = old;
	l->calls[l->length].ptr = ptr;
	l->calls[l->length].size = size;
	l->calls[l->length].function = (uint32_t)f;
	l->calls[l->length].op = (uint32_t)op;
	l->length++;
}

/* note_at is note for a call that was made at a line of the function caller. */
static ALWAYS_INLINE void note_at(struct ledger *l, enum function f, enum op op, uintptr_t old,
				  uintptr_t ptr, size_t size, const char *caller, int line)
{
	note(l, f, op, old, ptr, size);
	if (!l->calls)
		return;
	l->calls[l->length - 1].caller = caller;
	l->calls[l->length - 1].line = (uint32_t)line;
}

static ALWAYS_INLINE void *note_new(struct ledger *l, enum function f, void *p, size_t size)
{
	note(l, f, p ? OP_ALLOC : OP_NONE, 0, (uintptr_t)p, size);
	return p;
}

/* note_moved logs realloc's result: a block moved, made, freed, or nothing. */
static ALWAYS_INLINE void *note_moved(struct ledger *l, enum function f, uintptr_t old, void *p,
				      size_t size, int failed)
{
	enum op op = OP_NONE;

	if (p)
		op = old ? OP_MOVE : OP_ALLOC;
	else if (old && size == 0 && !failed)
		op = OP_FREE;
	note(l, f, op, old, (uintptr_t)p, size);
	return p;
}

/* The allocator's functions, with the call logged. */

static ALWAYS_INLINE void *do_malloc(struct ledger *l, size_t n)
{
	return note_new(l, FN_MALLOC, malloc(n), n);
}

static ALWAYS_INLINE void *do_calloc(struct ledger *l, size_t n, size_t each)
{
	return note_new(l, FN_CALLOC, calloc(n, each), n * each);
}

static ALWAYS_INLINE void do_free(struct ledger *l, void *p)
{
	uintptr_t old = (uintptr_t)p;

	free(p);
	note(l, FN_FREE, old ? OP_FREE : OP_NONE, old, 0, 0);
}

static ALWAYS_INLINE void *do_realloc(struct ledger *l, void *p, size_t n)
{
	uintptr_t old = (uintptr_t)p;

	return note_moved(l, FN_REALLOC, old, realloc(p, n), n, 0);
}

/* report_calls prints the log of one ledger. */
static __attribute__((unused)) void report_calls(const struct ledger *l)
{
	size_t i;

	for (i = 0; i < l->length; i++) {
		const struct call *c = &l->calls[i];

		out("call %d %s %llx %llx %llu %s", (int)l->tid, op_names[c->op],
		    (unsigned long long)c->old, (unsigned long long)c->ptr,
		    (unsigned long long)c->size, function_names[c->function]);
		if (c->caller)
			out("@%s:%u", c->caller, c->line);
		out("\n");
	}
}

/*
 * report prints the logs and the counts of n ledgers. more holds additional members of the JSON
 * object, or "".
 */
static __attribute__((unused)) void report(const struct ledger *ledgers, size_t n, const char *more)
{
	struct ledger sum;
	size_t i;
	int f, op, first = 1;

	memset(&sum, 0, sizeof(sum));
	for (i = 0; i < n; i++) {
		report_calls(&ledgers[i]);
		for (f = 0; f < FN_COUNT; f++) {
			sum.done[f] += ledgers[i].done[f];
			sum.bytes[f] += ledgers[i].bytes[f];
		}
		for (op = 0; op < 4; op++)
			sum.ops[op] += ledgers[i].ops[op];
	}
	out("{\"pid\":%d,\"tids\":[", (int)getpid());
	for (i = 0; i < n; i++)
		out("%s%d", i ? "," : "", (int)ledgers[i].tid);
	out("],\"functions\":{");
	for (f = 0; f < FN_COUNT; f++) {
		if (!sum.done[f])
			continue;
		out("%s\"%s\":{\"calls\":%llu,\"bytes\":%llu}", first ? "" : ",", function_names[f],
		    (unsigned long long)sum.done[f], (unsigned long long)sum.bytes[f]);
		first = 0;
	}
	out("},\"ops\":{");
	for (op = 0; op < 4; op++)
		out("%s\"%s\":%llu", op ? "," : "", op_names[op], (unsigned long long)sum.ops[op]);
	out("}%s%s}\n", *more ? "," : "", more);
	out_flush();
}

#endif /* PROG_H */
