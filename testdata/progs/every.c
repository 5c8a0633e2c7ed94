// SPDX-License-Identifier: Apache-2.0
/*
 * every: one call of each kind that the C library's allocator has, and of the
 * ways in which each can fail, logged. In this order:
 *
 *	malloc(100); malloc(0); malloc of 3 GiB, never touched; malloc(SIZE_MAX/2+1), which fails
 *	calloc(10, 20); calloc(SIZE_MAX/2+1, 4), which overflows and fails
 *	realloc(NULL, 30); realloc to 3000; realloc to 20; realloc to SIZE_MAX/2+1, which fails and
 *	leaves the block; realloc to 0, which frees it (musl: makes it small)
 *	reallocarray(NULL, 5, 8); reallocarray to 50 * 8; reallocarray to (SIZE_MAX/2+1) * 4, which
 *	fails
 *	posix_memalign(64, 200); posix_memalign(3, 200), which fails
 *	aligned_alloc(64, 128); memalign(128, 100); glibc: valloc(10), pvalloc(10)
 *	strdup("hello"), which calls malloc(6)
 *	free of the 3 GiB, of malloc(0)'s block and of calloc's; free(NULL)
 *
 * The others are left: malloc(100), reallocarray's 400, posix_memalign's 200,
 * aligned_alloc's 128, memalign's 100, valloc's 10, pvalloc's 10, strdup's 6.
 */
#include "prog.h"
#include <malloc.h>

/* The compiler must not know the size. */
static volatile size_t huge = SIZE_MAX / 2 + 1;
static volatile size_t gigabyte = (size_t)1 << 30;
static volatile size_t zero;
static volatile size_t bad_alignment = 3;

static void *noted_reallocarray(struct ledger *l, void *p, size_t n, size_t each)
{
	uintptr_t old = (uintptr_t)p;
	size_t size;
	int overflow = __builtin_mul_overflow(n, each, &size);

	return note_moved(l, FN_REALLOCARRAY, old, reallocarray(p, n, each), size, overflow);
}

static void noted_posix_memalign(struct ledger *l, size_t alignment, size_t size)
{
	void *p = NULL;
	int failed = posix_memalign(&p, alignment, size);

	note(l, FN_POSIX_MEMALIGN, failed ? OP_NONE : OP_ALLOC, 0, failed ? 0 : (uintptr_t)p, size);
}

int main(void)
{
	static struct ledger l;
	void *nothing, *large, *cleared, *p, *q;

	l.tid = thread_id();
	ledger_open(&l, 64);
	gate();

	do_malloc(&l, 100);
	nothing = do_malloc(&l, zero);
	large = do_malloc(&l, 3 * gigabyte); /* too much for 32-bit programs */
	do_malloc(&l, huge);

	cleared = do_calloc(&l, 10, 20);
	note_new(&l, FN_CALLOC, calloc(huge, 4), SIZE_MAX);

	p = do_realloc(&l, NULL, 30);
	p = do_realloc(&l, p, 3000);
	p = do_realloc(&l, p, 20);
	do_realloc(&l, p, huge);
	do_realloc(&l, p, zero);

	q = noted_reallocarray(&l, NULL, 5, 8);
	q = noted_reallocarray(&l, q, 50, 8);
	noted_reallocarray(&l, q, huge, 4);

	noted_posix_memalign(&l, 64, 200);
	noted_posix_memalign(&l, bad_alignment, 200);

	note_new(&l, FN_ALIGNED_ALLOC, aligned_alloc(64, 128), 128);
	note_new(&l, FN_MEMALIGN, memalign(128, 100), 100);
#ifdef __GLIBC__
	note_new(&l, FN_VALLOC, valloc(10), 10);
	note_new(&l, FN_PVALLOC, pvalloc(10), 10);
#endif
	note_new(&l, FN_MALLOC, strdup("hello"), 6);

	do_free(&l, large);
	do_free(&l, nothing);
	do_free(&l, cleared);
	do_free(&l, NULL);
	report(&l, 1, "");
	_exit(0);
}
