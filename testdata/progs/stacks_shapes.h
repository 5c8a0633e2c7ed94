/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that stay while their callee allocates, each of a shape that compilers or libraries
 * make. OPAQUE hides the value of a variable from the compiler, USE keeps it from omitting an
 * array, and both keep what precedes them from being a tail call.
 */
#ifndef STACKS_SHAPES_H
#define STACKS_SHAPES_H

#include <alloca.h>
#include <search.h>
#include <setjmp.h>
#include <ucontext.h>

#define OPAQUE(x) __asm__ volatile("" : "+r"(x) : : "memory")
#define USE(memory) __asm__ volatile("" : : "r"(memory) : "memory")

typedef void *(*maker)(size_t n);

/* nested makes a block below n frames of its own. */
static NOINLINE void *nested(unsigned long n)
{
	void *p = n > 1 ? nested(n - 1) : malloc(n + 16);

	OPAQUE(p);
	return p;
}

static NOINLINE void *through_pointer(maker make, size_t n)
{
	void *p;

	OPAQUE(make);
	p = make(n);
	OPAQUE(p);
	return p;
}

/* The frame of a tail call is gone. */
static NOINLINE void *by_tail_call(size_t n)
{
	OPAQUE(n);
	return malloc(n + 3);
}

static NOINLINE void *below_alloca(size_t n)
{
	char *room = (char *)alloca(n % 700 + 1);
	void *p;

	USE(room);
	p = malloc(n);
	USE(room);
	return p;
}

static NOINLINE void *below_array(size_t n)
{
	char room[n % 300 + 1];
	void *p;

	USE(room);
	p = by_tail_call(n);
	USE(room);
	return p;
}

#define BIG_FRAME(name, bytes)               \
	static NOINLINE void *name(size_t n) \
	{                                    \
		char room[bytes];            \
		void *p;                     \
                                             \
		USE(room);                   \
		p = below_alloca(n);         \
		USE(room);                   \
		return p;                    \
	}

BIG_FRAME(below_5k, 5 << 10)
BIG_FRAME(below_70k, 70 << 10)

/* A frame that aligns the stack, whose caller is found with an expression. */
static NOINLINE void *below_aligned(size_t n)
{
	char room[64] __attribute__((aligned(64)));
	char *more = (char *)alloca(n % 100 + 1);
	void *p;

	USE(room);
	USE(more);
	p = through_pointer(below_array, n);
	USE(room);
	return p;
}

#if defined(__x86_64__) || defined(__i386__)
static NOINLINE __attribute__((force_align_arg_pointer)) void *below_realigned(size_t n)
{
	void *p = malloc(n + 5);

	OPAQUE(p);
	return p;
}
#else
#define below_realigned below_aligned
#endif

/* Many live variables: every register that a callee must preserve is saved. */
static NOINLINE void *below_saved_registers(size_t n)
{
	size_t a = n + 1, b = n + 2, c = n + 3, d = n + 4, e = n + 5, f = n + 6;
	void *p, *q;

	OPAQUE(a);
	OPAQUE(b);
	OPAQUE(c);
	OPAQUE(d);
	OPAQUE(e);
	OPAQUE(f);
	p = malloc(a);
	q = calloc(b, 2);
	q = realloc(q, c + d);
	free(q);
	return realloc(p, e * f);
}

/* Callbacks of libc: its frames are in the middle. */

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	if (x % 4 == 0)
		free(malloc((size_t)(x + y + 1)));
	return (x > y) - (x < y);
}

static NOINLINE void by_callback(unsigned long seed)
{
	int numbers[24], i, key = 12;
	void *tree = NULL;

	for (i = 0; i < 24; i++)
		numbers[i] = (int)((seed + (unsigned long)i * 7) % 24);
	qsort(numbers, 24, sizeof(int), compare);
	(void)bsearch(&key, numbers, 24, sizeof(int), compare);
	for (i = 0; i < 6; i++)
		(void)tsearch(&numbers[i], &tree, compare);
	for (i = 0; i < 6; i++)
		(void)tdelete(&numbers[i], &tree, compare);
}

/* Allocations by libc. */
static NOINLINE void inside_libc(void)
{
	char *text = NULL, *copy = strdup("a text");
	size_t size = 0;
	FILE *f;

	free(copy);
	if (asprintf(&text, "%s: %0150d", "a number", 7) < 0)
		die("asprintf");
	free(text);
	f = open_memstream(&text, &size);
	fprintf(f, "%0500d\n", 1);
	fclose(f);
	free(text);
	f = fopen("/proc/self/stat", "re");
	text = NULL;
	size = 0;
	if (!f || getline(&text, &size, f) < 0)
		die("getline");
	free(text);
	fclose(f);
}

/* Every function of the allocator. */
static NOINLINE void every_function(size_t n)
{
	void *p = calloc(n, 3), *q = NULL;

	p = realloc(p, n * 5);
	p = reallocarray(p, n, 2);
	free(p);
	free(realloc(NULL, n));
	if (posix_memalign(&q, 64, n) == 0)
		free(q);
	free(aligned_alloc(128, n));
	free(memalign(32, n));
	free(malloc(200 << 10));
}

/* longjmp abandons frames, from a call that is the last instruction. */

static __thread jmp_buf escape;

static NOINLINE __attribute__((noreturn)) void leave(size_t n)
{
	free(malloc(n));
	longjmp(escape, 1);
}

static NOINLINE __attribute__((noreturn)) void leave_from_below(size_t n)
{
	char room[200];

	USE(room);
	leave(n);
}

static NOINLINE void over_frames(size_t n)
{
	if (setjmp(escape) == 0)
		leave_from_below(n);
	free(malloc(n));
}

/* A stack that is not the thread's. */

static __thread ucontext_t home, away;

static void on_other_stack(void)
{
	void *p = below_aligned(40);

	swapcontext(&away, &home);
	free(p);
	swapcontext(&away, &home);
}

static NOINLINE void two_stacks(void)
{
	static __thread char stack[32 << 10] __attribute__((aligned(16)));

	getcontext(&away);
	away.uc_stack.ss_sp = stack;
	away.uc_stack.ss_size = sizeof(stack);
	away.uc_link = NULL;
	makecontext(&away, on_other_stack, 0);
	swapcontext(&home, &away);
	free(nested(2));
	swapcontext(&home, &away);
}

/* shapes makes all of them. */
static NOINLINE void shapes(unsigned long seed)
{
	static const maker makers[] = { below_alloca,	 below_array,
					by_tail_call,	 below_5k,
					below_70k,	 below_aligned,
					below_realigned, below_saved_registers };
	size_t i;

	for (i = 0; i < sizeof(makers) / sizeof(*makers); i++)
		free(through_pointer(makers[i], seed % 1000 + i));
	free(nested(seed % 60 + 1));
	by_callback(seed);
	inside_libc();
	every_function(seed % 90 + 1);
	over_frames(seed % 500);
	two_stacks();
}

#endif /* STACKS_SHAPES_H */
