// SPDX-License-Identifier: Apache-2.0
/*
 * arguments: calls of the allocator with arguments of all kinds.
 *
 * Output: for each call that is in a trace "OP FUNCTION memory BLOCK SIZE" and its
 * arguments as NAME=VALUE. FUNCTION is several names with | between them if the C library
 * may have one function for them.
 */
#include "prog.h"
#include <malloc.h>

/* The compiler must not know the sizes. */
static volatile size_t none, many = (size_t)1 << (sizeof(size_t) * 4);

#define AT(p) ((unsigned long)(uintptr_t)(p))

static void alignments(void)
{
	void *p = NULL;
	size_t n;

	for (n = sizeof(void *); n <= 1 << 20; n *= 32) {
		if (posix_memalign(&p, n, 200 + n) != 0)
			die("no aligned memory");
		out("alloc posix_memalign memory %#lx %zu alignment=%zu size=%zu\n", AT(p), 200 + n,
		    n, 200 + n);
		p = aligned_alloc(n, n);
		out("alloc aligned_alloc|memalign memory %#lx %zu alignment=%zu size=%zu\n", AT(p),
		    n, n, n);
		p = memalign(n, 100);
		out("alloc aligned_alloc|memalign memory %#lx 100 alignment=%zu size=100\n", AT(p),
		    n);
	}
#ifdef __GLIBC__
	out("alloc valloc memory %#lx 10 size=10\n", AT(valloc(10)));
	out("alloc pvalloc memory %#lx 10 size=10\n", AT(pvalloc(10)));
#endif
}

static void products(void)
{
	void *p;

	out("alloc calloc memory %#lx 200 nmemb=10 size=20\n", AT(calloc(10, 20)));
	out("alloc calloc memory %#lx 0 nmemb=0 size=24\n", AT(calloc(none, 24)));
	out("alloc calloc memory %#lx 0 nmemb=7 size=0\n", AT(calloc(7, none)));
	out("alloc calloc memory %#lx 0 nmemb=0 size=0\n", AT(calloc(none, none)));
	/* The first factor is one more than half a word can hold; there may not be enough memory. */
	p = sizeof(size_t) == 8 ? calloc(many, 1) : NULL;
	if (p)
		out("alloc calloc memory %#lx %zu nmemb=%zu size=1\n", AT(p), many, many);
	free(p);
	if (p)
		out("free free memory %#lx 0 ptr=%#lx\n", AT(p), AT(p));
}

static void moves(void)
{
	void *p = realloc(NULL, 30), *q;
	uintptr_t old = (uintptr_t)p;

	out("alloc realloc memory %#lx 30 ptr=0x0 size=30\n", AT(p));
	q = realloc(p, 3000);
	out("move realloc memory %#lx 3000 ptr=%#lx size=3000\n", AT(q), (unsigned long)old);
	free(q);
	out("free free memory %#lx 0 ptr=%#lx\n", AT(q), AT(q));
	p = reallocarray(NULL, 5, 8);
	old = (uintptr_t)p;
	out("alloc reallocarray memory %#lx 40 ptr=0x0 nmemb=5 size=8\n", AT(p));
	q = reallocarray(p, 50, 9);
	out("move reallocarray memory %#lx 450 ptr=%#lx nmemb=50 size=9\n", AT(q),
	    (unsigned long)old);
	old = (uintptr_t)q;
	if (realloc(q, none))
		die("a block of no size");
	out("free realloc memory %#lx 0 ptr=%#lx\n", (unsigned long)old, (unsigned long)old);
}

int main(void)
{
	gate();
	out("alloc malloc memory %#lx 100 size=100\n", AT(malloc(100)));
	products();
	moves();
	alignments();
	out_flush();
	return 0;
}
