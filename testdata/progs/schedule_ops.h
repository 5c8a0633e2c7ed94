/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator's part of schedule.cpp: what one thread does with its blocks, chosen by its
 * random numbers.
 */
#ifndef SCHEDULE_OPS_H
#define SCHEDULE_OPS_H

#include "prog.h"
#include <malloc.h>
#include <new>
#include <string>
#include <vector>

enum { OWN = 64, SHARED = 256 };

/* Blocks that any thread stores and any other one frees. */
static void *shared_blocks[SHARED];

struct worker {
	uint64_t seed;
	void *own[OWN];
};

static ALWAYS_INLINE uint64_t draw(struct worker *w)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return w->seed * 0x2545f4914f6cdd1d >> 16;
}

/* below returns a number from 0 to n - 1. */
static ALWAYS_INLINE size_t below(struct worker *w, size_t n)
{
	return (size_t)(draw(w) % n);
}

/* a_size returns mostly small sizes, sometimes sizes for mmap, and now and then 0. */
static size_t a_size(struct worker *w)
{
	switch (below(w, 64)) {
	case 0:
		return 0;
	case 1:
		return below(w, 600 << 10);
	case 2:
	case 3:
	case 4:
		return below(w, 20000);
	default:
		return below(w, 600);
	}
}

/*
 * a_huge_size returns a size that no allocator can provide. Where pointers have 32 bits there may
 * be room for PTRDIFF_MAX.
 */
static size_t a_huge_size(struct worker *w)
{
	static const size_t sizes[] = {
		SIZE_MAX,	  SIZE_MAX / 2 + 1, SIZE_MAX - 4096,
		SIZE_MAX / 2 + 9, SIZE_MAX / 2,	    SIZE_MAX / 2 - 4096,
	};

	return sizes[below(w, sizeof(void *) == 8 ? 6 : 4)];
}

static void **own_place(struct worker *w)
{
	return &w->own[below(w, OWN)];
}

/* keep stores a block in one of the worker's places, and frees what was there. */
static void keep(struct worker *w, void *p)
{
	void **place = own_place(w);

	free(*place); /* or NULL */
	*place = p;
}

static void op_malloc(struct worker *w)
{
	keep(w, malloc(a_size(w)));
}

static void op_free(struct worker *w)
{
	keep(w, NULL);
}

static void op_calloc(struct worker *w)
{
	size_t n = below(w, 40);

	keep(w, below(w, 16) ? calloc(n, below(w, 100)) : calloc(a_huge_size(w), 3));
}

/* op_hand_over leaves a block for another thread and frees what was there. */
static void op_hand_over(struct worker *w)
{
	void *p = malloc(a_size(w));

	free(__atomic_exchange_n(&shared_blocks[below(w, SHARED)], p, __ATOMIC_ACQ_REL));
}

/* op_take_over takes a block of another thread and moves it. */
static void op_take_over(struct worker *w)
{
	void **at = &shared_blocks[below(w, SHARED)], *p, *q;
	size_t n = a_size(w) + 1;

	p = __atomic_exchange_n(at, (void *)NULL, __ATOMIC_ACQ_REL);
	q = realloc(p, n);
	keep(w, q ? q : p);
}

static void op_realloc(struct worker *w)
{
	void **place = own_place(w), *p;
	size_t i, n = below(w, 5) + 1, size = a_size(w) + 1;

	for (i = 0; i < n; i++) {
		p = realloc(*place, size);
		if (p)
			*place = p;
		size = below(w, 3) ? size * 2 : size / 3 + 1;
	}
	if (!below(w, 8) && *place)
		*place = realloc(*place, 0); /* frees it, or makes it small */
}

static void op_realloc_fails(struct worker *w)
{
	void **place = own_place(w), *p = realloc(*place, a_huge_size(w));

	if (p)
		die("a block of half of the memory");
	p = reallocarray(*place, a_huge_size(w), 5);
	if (p)
		die("a block of more than the memory");
}

static void op_reallocarray(struct worker *w)
{
	void **place = own_place(w), *p = reallocarray(*place, below(w, 30) + 1, below(w, 90) + 1);

	if (p)
		*place = p;
}

static void op_huge(struct worker *w)
{
	void *p = malloc(a_huge_size(w)), *q = NULL;

	if (p || calloc(1, a_huge_size(w)) || posix_memalign(&q, 64, a_huge_size(w)) == 0 ||
	    memalign(64, a_huge_size(w)))
		die("a block of half of the memory");
	if (sizeof(p) == 8 && !below(w, 8)) /* and a block that is never touched */
		free(malloc((size_t)3 << 30));
}

static void op_aligned(struct worker *w)
{
	size_t alignment = (size_t)16 << below(w, 9), n = below(w, 3000);
	void *p = NULL;

	switch (below(w, 7)) {
	case 0:
		p = memalign(alignment, n);
		break;
	case 1:
		p = aligned_alloc(alignment, n);
		break;
	case 2:
		p = valloc(n);
		break;
	case 3:
		p = pvalloc(n);
		break;
	case 4:
		if (!posix_memalign(&p, 3, n)) /* not a power of two */
			die("a block at a multiple of 3");
		p = NULL;
		break;
	default:
		if (posix_memalign(&p, alignment, n))
			p = NULL;
	}
	keep(w, p);
}

/* op_libc calls functions of the C library that allocate. */
static void op_libc(struct worker *w)
{
	char *text = strdup("a text that is copied"), *printed = NULL;
	size_t room = 0;
	FILE *f;

	keep(w, strndup(text, below(w, 30)));
	free(text);
	if (asprintf(&printed, "%0*d", (int)below(w, 400) + 1, 7) < 0)
		die("asprintf");
	if (!below(w, 4)) {
		text = NULL;
		f = fmemopen(printed, strlen(printed), "r");
		if (!f || getline(&text, &room, f) < 0 || fclose(f))
			die("getline");
		free(text);
	}
	free(printed);
}

static void op_cxx(struct worker *w)
{
	std::vector<std::string> all;
	size_t i, n = below(w, 12);

	for (i = 0; i < n; i++)
		all.emplace_back(below(w, 100), 'x');
	delete new long(7);
	::operator delete(::operator new(below(w, 500), std::align_val_t(64)),
			  std::align_val_t(64));
	if (::operator new[](a_huge_size(w), std::nothrow))
		die("a block of half of the memory");
}

typedef void operation(struct worker *w);

/* The operations, with their relative frequencies. */
static const struct {
	operation *run;
	unsigned weight;
} allocations[] = {
	{ op_malloc, 30 },   { op_free, 12 },	{ op_calloc, 8 },	{ op_hand_over, 16 },
	{ op_take_over, 8 }, { op_realloc, 8 }, { op_reallocarray, 3 }, { op_realloc_fails, 2 },
	{ op_huge, 1 },	     { op_aligned, 6 }, { op_libc, 3 },		{ op_cxx, 3 },
};

static void allocate(struct worker *w)
{
	size_t i = 0, total = 100, at = below(w, total);

	while (at >= allocations[i].weight)
		at -= allocations[i++].weight;
	allocations[i].run(w);
}

#endif /* SCHEDULE_OPS_H */
