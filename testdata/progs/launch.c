// SPDX-License-Identifier: Apache-2.0
/*
 * launch: allocates from its constructor on, logged. It has no gate.
 *
 * With LIBRARY defined it is a library (-shared -fPIC) whose constructor allocates. With
 * NEEDS_LIBRARY the program is linked with that library. The calls of one thread are, in this
 * order: those of the library's constructor, those of the program's, those of main.
 */
#include "prog.h"

enum { CALLS = 64 };

#ifdef LIBRARY
struct ledger launch_library;

static __attribute__((constructor)) void begin_library(void)
{
	void *p, *q;

	launch_library.tid = thread_id();
	ledger_open(&launch_library, CALLS);
	p = do_malloc(&launch_library, 1001);
	q = do_calloc(&launch_library, 7, 11);
	p = do_realloc(&launch_library, p, 100002);
	do_free(&launch_library, q);
	do_malloc(&launch_library, 1003);
	do_free(&launch_library, p);
}
#else
#ifdef NEEDS_LIBRARY
extern struct ledger launch_library;
#endif

static struct ledger all;

static __attribute__((constructor)) void begin_program(void)
{
	void *p;

	all.tid = thread_id();
	ledger_open(&all, 2 * CALLS);
#ifdef NEEDS_LIBRARY
	size_t i;

	for (i = 0; i < launch_library.length; i++) {
		const struct call *c = &launch_library.calls[i];

		note(&all, (enum function)c->function, (enum op)c->op, c->old, c->ptr, c->size);
	}
#endif
	p = do_malloc(&all, 2001);
	do_free(&all, p);
	do_malloc(&all, 2002);
}

int main(void)
{
	void *p = do_malloc(&all, 3001);
	int i;

	for (i = 0; i < CALLS / 4; i++)
		p = do_realloc(&all, p, 3001 + 100 * (size_t)i);
	do_free(&all, p);
	report(&all, 1, "");
	return 0;
}
#endif
