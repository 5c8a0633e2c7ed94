// SPDX-License-Identifier: Apache-2.0
/*
 * leak: seven functions, alloc_a to alloc_g, that leak, and calls that do not.
 *
 * After the gate main calls each once. alloc_x number i (from 1) makes malloc(1000 * i),
 * which it keeps, and malloc(10 * i), which it frees. alloc_g uses calloc, and its kept
 * block is moved once by realloc. alloc_f calls alloc_g, so alloc_g's leak has alloc_f and
 * main above it. Left: seven blocks with 28000 bytes. The JSON lists them under "leaks".
 *
 * Built with frame pointers, so that each function can be seen on the stack.
 */
#include "prog.h"

/* kept holds the leaks, so that the compiler does not omit them. */
static void *volatile kept[7];
static struct ledger l;

#define LEAK(name, i)                                    \
	static NOINLINE void name(void)                  \
	{                                                \
		void *gone;                              \
                                                         \
		kept[(i)-1] = do_malloc(&l, 1000 * (i)); \
		gone = do_malloc(&l, 10 * (i));          \
		do_free(&l, gone);                       \
	}

LEAK(alloc_a, 1)
LEAK(alloc_b, 2)
LEAK(alloc_c, 3)
LEAK(alloc_d, 4)
LEAK(alloc_e, 5)

static NOINLINE void alloc_g(void)
{
	void *p = do_calloc(&l, 7, 10);
	void *gone = do_calloc(&l, 7, 10);

	kept[6] = do_realloc(&l, p, 7000);
	do_free(&l, gone);
}

static NOINLINE void alloc_f(void)
{
	void *gone;

	kept[5] = do_malloc(&l, 6000);
	gone = do_malloc(&l, 60);
	do_free(&l, gone);
	alloc_g();
	kept[5] = kept[5]; /* no tail call: alloc_f stays on the stack */
}

int main(void)
{
	l.tid = thread_id();
	ledger_open(&l, 64);
	gate();
	alloc_a();
	alloc_b();
	alloc_c();
	alloc_d();
	alloc_e();
	alloc_f();
	report(&l, 1,
	       "\"leaks\":{\"alloc_a\":1000,\"alloc_b\":2000,\"alloc_c\":3000,\"alloc_d\":4000,"
	       "\"alloc_e\":5000,\"alloc_f\":6000,\"alloc_g\":7000}");
	_exit(0);
}
