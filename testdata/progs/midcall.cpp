// SPDX-License-Identifier: Apache-2.0
/*
 * midcall HOW: calls of malloc in the middle of which something happens, at each of their
 * instructions in turn. Only x86-64. HOW is one of
 *
 *	jump	siglongjmp out of a call that takes its block from the thread's cache. A call
 *		that was left is logged without effect, with the block that it would have
 *		taken; then comes a call for the same size, which gets that block if the call
 *		before had not taken it. Each call has a size of its own
 *	large	siglongjmp out of a call that maps its block, in a process with one thread; the
 *		same size is not requested again
 *	fork	a child by fork in such calls as those of "jump". The child completes the call,
 *		and makes others that are not logged
 *	vfork	a child by vfork, which makes calls that are not logged
 *
 * The last of these calls is not disturbed: it has fewer instructions.
 */
#include "interrupted.h"
#include <malloc.h>
#include <setjmp.h>
#include <sys/wait.h>

enum { SIZES = 60, CACHED = 4, MOST = 4000, CHILD_CODE = 7 };

static unsigned long stop; /* the step at which something happens */
static sigjmp_buf away;
static bool is_child;
static pid_t child;
static void *next_block[SIZES + 1]; /* first one of the thread's cache */

static size_t size_of(unsigned long k)
{
	return 24 + 16 * (k - 1);
}

/* fill_cache puts some blocks of each size into the thread's cache. */
static void fill_cache()
{
	void *p[CACHED];

	for (unsigned long k = 1; k <= SIZES; k++) {
		for (auto &block : p)
			block = malloc(size_of(k));
		for (auto block : p)
			free(block);
		next_block[k] = p[CACHED - 1];
	}
}

static void leave(ucontext_t *)
{
	if (steps == stop)
		siglongjmp(away, 1);
}

/* Without the C library's fork, which waits for the locks of the allocator. */
static void divide(ucontext_t *)
{
	if (steps != stop || is_child)
		return;
	child = (pid_t)syscall(SYS_fork);
	if (child < 0)
		die("no child");
	is_child = child == 0;
}

/* The child has the memory of its parent. It uses none of the sizes that are logged. */
static void borrow(ucontext_t *)
{
	if (steps != stop)
		return;
	child = vfork();
	if (child < 0)
		die("no child");
	if (child == 0) {
		free(malloc(2000));
		_exit(CHILD_CODE);
	}
}

static NOINLINE void *call(size_t n)
{
	steps = 0;
	return stepped((void *)malloc, n, 0, 0);
}

/* child_calls completes what the child of a fork does. */
static __attribute__((noreturn)) void child_calls(void *p, unsigned long k)
{
	if (p != next_block[k])
		_exit(1);
	memset(p, 1, size_of(k));
	free(p);
	for (size_t n = 1; n < 3000; n += 100)
		free(malloc(n));
	_exit(CHILD_CODE);
}

static void wait_for_child()
{
	int status;

	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != CHILD_CODE)
		die("the child ended with status %#x", status);
	child = 0;
}

static void jumps()
{
	for (stop = 1; stop <= SIZES; stop++) {
		size_t n = size_of(stop);

		if (!sigsetjmp(away, 1)) {
			note_new(&l, FN_MALLOC, call(n), n);
			return;
		}
		note(&l, FN_MALLOC, OP_NONE, 0, (uintptr_t)next_block[stop], n);
		do_malloc(&l, n);
	}
	die("a call of more than %d instructions", SIZES);
}

static void large_jumps()
{
	for (stop = 1; stop <= MOST; stop++) {
		size_t n = (1 << 20) + stop * 8192;

		if (!sigsetjmp(away, 1)) {
			note_new(&l, FN_MALLOC, call(n), n);
			return;
		}
		note(&l, FN_MALLOC, OP_NONE, 0, 0, n);
	}
	die("a call of more than %d instructions", MOST);
}

static void children()
{
	for (stop = 1; stop <= SIZES; stop++) {
		void *p = call(size_of(stop));

		if (is_child)
			child_calls(p, stop);
		note_new(&l, FN_MALLOC, p, size_of(stop));
		if (!child)
			return;
		wait_for_child();
	}
	die("a call of more than %d instructions", SIZES);
}

static void (*calls)();

static void run()
{
	fill_cache();
	gate();
	calls();
	do_free(&l, do_malloc(&l, 2500));
}

static const struct {
	const char *name;
	void (*react)(ucontext_t *);
	void (*calls)();
} all[] = {
	{ "jump", leave, jumps },
	{ "large", leave, large_jumps },
	{ "fork", divide, children },
	{ "vfork", borrow, children },
};

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: midcall HOW");
	ledger_open(&l, MOST + 4 * SIZES);
	if (!mallopt(M_MMAP_THRESHOLD, 128 << 10))
		die("no threshold");
	free(malloc(2000));
	for (const auto &one : all) {
		if (strcmp(one.name, argv[1]))
			continue;
		calls = one.calls;
		if (calls == large_jumps) {
			l.tid = thread_id();
			interrupt_calls(one.react, 0);
			run();
		} else {
			interrupted_thread(run, one.react, false);
		}
		report(&l, 1, "");
		_exit(0);
	}
	die("no way '%s'", argv[1]);
}
