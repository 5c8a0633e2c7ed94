// SPDX-License-Identifier: Apache-2.0
/*
 * heapgrow: an allocator that grows in all ways, and a program that maps memory itself;
 * logged.
 *
 * Four threads act one after the other, each with blocks of 1000 bytes that make its heap
 * grow. All blocks are left:
 *
 *	0	the first one: 5000 blocks in the heap of brk; blocks with mappings of their own,
 *		some of which are moved, extended in place and shrunk
 *	1	3000 blocks in an arena that it has had since before the gate
 *	2	3000 blocks in an arena that it makes with the first of them
 *	3	first frees a block of thread 0, which makes its arena, then 3000 blocks
 *
 * Before the gate, thread 0 also makes a block with a mapping of its own, which it moves after
 * the gate. In between, thread 0 calls sbrk, mmap, mprotect and mremap itself: "maps" of the
 * JSON is the memory that it got from these.
 */
#include "prog.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

enum { THREADS = 4, SMALL = 1000, OWN = 8, MEGABYTE = 1 << 20 };

static pthread_barrier_t made, turn[THREADS + 1];
static struct ledger *ledgers;
static void *handed; /* thread 0 makes it, thread 3 frees it */
static void *mapped; /* is mapped before the gate */

static struct {
	uintptr_t start;
	size_t size;
} own[OWN];
static int owns;

static void note_own(void *p, size_t size)
{
	if (p == MAP_FAILED || owns == OWN)
		die("no memory of the program's own");
	own[owns].start = (uintptr_t)p;
	own[owns++].size = size;
}

/* map_own does what the allocator does, but outside of the allocator. */
static void map_own(void)
{
	char *p = (char *)mmap(NULL, 300000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

	note_own(p, 303104);
	p = (char *)mremap(p, 303104, 2 * MEGABYTE, MREMAP_MAYMOVE);
	note_own(p, 2 * MEGABYTE);
	p = (char *)mmap(NULL, MEGABYTE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || mprotect(p, 8192, PROT_READ | PROT_WRITE))
		die("no memory of the program's own");
	note_own(p, 8192);
	/* Not a multiple of malloc's alignment: malloc must correct for it. */
	note_own(sbrk(5000), 5000);
}

static void small_blocks(struct ledger *l, int n)
{
	while (n-- > 0)
		if (!do_malloc(l, SMALL))
			die("no memory");
}

/* large_blocks makes blocks that are mapped one below the other. */
static void large_blocks(struct ledger *l)
{
	struct rlimit before, none;
	void *a, *b, *c;

	getrlimit(RLIMIT_AS, &before);
	none = before;
	none.rlim_cur = 0;
	mapped = do_realloc(l, mapped, 3 * MEGABYTE);
	a = do_malloc(l, MEGABYTE);
	b = do_malloc(l, MEGABYTE);
	c = do_calloc(l, 3, MEGABYTE / 3);
	do_free(l, a);
	b = do_realloc(l, b, MEGABYTE + 400000); /* into the hole */
	c = do_realloc(l, c, 4 * MEGABYTE); /* b is in the way */
	c = do_realloc(l, c, 4 * MEGABYTE + 10); /* the same pages */
	b = do_realloc(l, b, 500000);
	c = note_moved(l, FN_REALLOCARRAY, (uintptr_t)c, reallocarray(c, 7, MEGABYTE), 7 * MEGABYTE,
		       0);
	a = note_new(l, FN_ALIGNED_ALLOC, aligned_alloc(65536, 3 * MEGABYTE), 3 * MEGABYTE);
	/* The system refuses, whatever the size of pointers. */
	setrlimit(RLIMIT_AS, &none);
	if (do_malloc(l, MEGABYTE * 1024))
		die("a gigabyte");
	setrlimit(RLIMIT_AS, &before);
}

static void work(int i)
{
	struct ledger *l = &ledgers[i];

	switch (i) {
	case 0:
		small_blocks(l, 2000);
		map_own();
		small_blocks(l, 3000);
		large_blocks(l);
		map_own();
		break;
	case 3:
		do_free(l, handed);
		/* fall through */
	default:
		small_blocks(l, 3000);
	}
}

static void *run(void *arg)
{
	struct ledger *l = (struct ledger *)arg;
	int i = (int)(l - ledgers);

	l->tid = thread_id();
	if (i == 1 && !malloc(SMALL))
		die("no memory");
	pthread_barrier_wait(&made);
	pthread_barrier_wait(&turn[i]);
	work(i);
	pthread_barrier_wait(&turn[i + 1]);
	return park();
}

int main(void)
{
	char more[OWN * 64];
	pthread_t t;
	int i, n = 0;

	/* Fixed thresholds: otherwise they grow with what is freed. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	handed = malloc(SMALL);
	mapped = malloc(200000);
	ledgers = new_ledgers(THREADS);
	pthread_barrier_init(&made, NULL, THREADS);
	for (i = 0; i < THREADS; i++) {
		pthread_barrier_init(&turn[i + 1], NULL, 2);
		ledger_open(&ledgers[i], 6000);
	}
	for (i = 1; i < THREADS; i++)
		if (pthread_create(&t, NULL, run, &ledgers[i]))
			die("no thread");
	ledgers[0].tid = thread_id();
	pthread_barrier_wait(&made);
	gate();
	work(0);
	pthread_barrier_wait(&turn[1]);
	pthread_barrier_wait(&turn[THREADS]);
	for (i = 0; i < owns; i++)
		n += snprintf(more + n, sizeof(more) - (size_t)n,
			      "%s{\"start\":%llu,\"size\":%llu}", i ? "," : "\"maps\":[",
			      (unsigned long long)own[i].start, (unsigned long long)own[i].size);
	snprintf(more + n, sizeof(more) - (size_t)n, "]");
	report(ledgers, THREADS, more);
	_exit(0);
}
