// SPDX-License-Identifier: Apache-2.0
/*
 * prefixes ROUNDS: three allocators in one program, logged. In addition to the C library's
 * there are two of the program's own, whose functions have the prefixes je_ (known as
 * jemalloc's) and own_ (unknown). They take blocks of 4096 bytes and more from malloc;
 * je_realloc consists of je_malloc and je_free.
 *
 * Each round:
 *
 *	malloc(10), je_malloc(20), own_malloc(30), je_malloc(5000), own_malloc(6000),
 *	je_calloc(3, 7), je_realloc of the block of 20 to 200 and of that to 7000, and
 *	then je_free, own_free and free of all but own_malloc's 30
 *
 * In the log, @PREFIX:0 shows which function was called.
 */
#include "prog.h"

enum { LARGE = 4096, HEAD = 16 };

/* Blocks that are not malloc's come from here and are not reused. */
static char arena[1 << 22] __attribute__((aligned(HEAD)));
static size_t used;

static NOINLINE void *get(size_t n)
{
	size_t *p;

	if (n >= LARGE) {
		p = malloc(n + HEAD);
	} else {
		p = (size_t *)(arena + used);
		used += (n + 2 * HEAD - 1) & ~(size_t)(HEAD - 1);
		if (used > sizeof(arena))
			die("the arena is full");
	}
	if (!p)
		return NULL;
	*p = n;
	return (char *)p + HEAD;
}

static NOINLINE void put(void *p)
{
	size_t *head = (size_t *)((char *)p - HEAD);

	if (*head >= LARGE)
		free(head);
	else
		*head = 0;
}

void *je_malloc(size_t n);
void *je_calloc(size_t n, size_t each);
void *je_realloc(void *p, size_t n);
void je_free(void *p);
void *own_malloc(size_t n);
void own_free(void *p);

NOINLINE void *je_malloc(size_t n)
{
	return get(n);
}

NOINLINE void *own_malloc(size_t n)
{
	return get(n);
}

NOINLINE void je_free(void *p)
{
	if (p)
		put(p);
}

NOINLINE void own_free(void *p)
{
	if (p)
		put(p);
}

NOINLINE void *je_calloc(size_t n, size_t each)
{
	return memset(get(n * each), 0, n * each);
}

NOINLINE void *je_realloc(void *p, size_t n)
{
	void *moved = je_malloc(n);

	if (moved && p) {
		size_t old = *(size_t *)((char *)p - HEAD);

		memcpy(moved, p, old < n ? old : n);
		je_free(p);
	}
	return moved;
}

static struct ledger l;

static void *made(enum function f, void *p, size_t n, const char *prefix)
{
	note_at(&l, f, OP_ALLOC, 0, (uintptr_t)p, n, prefix, 0);
	return p;
}

static void *moved(uintptr_t old, void *p, size_t n)
{
	note_at(&l, FN_REALLOC, OP_MOVE, old, (uintptr_t)p, n, "je_", 0);
	return p;
}

static void freed(void *p, const char *prefix)
{
	note_at(&l, FN_FREE, OP_FREE, (uintptr_t)p, 0, 0, prefix, 0);
}

static void step(void)
{
	void *p = do_malloc(&l, 10), *q = made(FN_MALLOC, je_malloc(20), 20, "je_");
	void *r = (made(FN_MALLOC, own_malloc(30), 30, "own_"),
		   made(FN_MALLOC, je_malloc(5000), 5000, "je_"));
	void *s = made(FN_MALLOC, own_malloc(6000), 6000, "own_");
	void *t = made(FN_CALLOC, je_calloc(3, 7), 21, "je_");

	q = moved((uintptr_t)q, je_realloc(q, 200), 200);
	q = moved((uintptr_t)q, je_realloc(q, 7000), 7000);
	freed(q, "je_");
	je_free(q);
	freed(r, "je_");
	je_free(r);
	freed(s, "own_");
	own_free(s);
	freed(t, "je_");
	je_free(t);
	do_free(&l, p);
}

int main(int argc, char **argv)
{
	unsigned long rounds, i;

	if (argc < 2)
		die("usage: prefixes ROUNDS");
	rounds = number(argv[1]);
	l.tid = thread_id();
	ledger_open(&l, 13 * rounds);
	gate();
	for (i = 0; i < rounds; i++)
		step();
	report(&l, 1, "");
	_exit(0);
}
