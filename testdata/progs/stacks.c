// SPDX-License-Identifier: Apache-2.0
/*
 * stacks LOG ROUNDS THREADS: allocations below frames of every shape.
 *
 * After the gate each of THREADS threads (the main one is the first) makes, ROUNDS times, all
 * the shapes below, each of which makes some blocks and frees them. The log of stacklog.h has
 * every call of the allocator, with the stack that backtrace() finds.
 *
 *	stacks LOG deep N
 *
 * instead makes one block below N nested calls, and
 *
 *	stacks LOG bind 1
 *
 * makes blocks in a signal handler at every instruction while the dynamic loader binds a
 * function.
 */
#include "stacklog.h"
#include "stacks_shapes.h"
#include "stacks_signals.h"
#include "stacks_steps.h"
#include <pthread.h>

static unsigned long rounds;
static pthread_barrier_t start;

/* once_per_run makes the shapes that take long. */
static NOINLINE void once_per_run(void)
{
	signals_by_timer(100);
	steps();
}

static NOINLINE void every_shape(unsigned long seed)
{
	unsigned long i;

	for (i = 0; i < rounds; i++) {
		shapes(seed + i);
		signals();
	}
	once_per_run();
}

static void *run(void *arg)
{
	signals_open();
	pthread_barrier_wait(&start);
	every_shape((unsigned long)(uintptr_t)arg);
	signals_close();
	return NULL;
}

int main(int argc, char **argv)
{
	static pthread_t threads[64];
	unsigned long n, i;

	if (argc < 4)
		die("usage: stacks LOG ROUNDS THREADS, stacks LOG deep N or stacks LOG bind 1");
	signals_install();
	steps_install();
	stacklog_open(argv[1]);
	n = number(argv[3]);
	if (strcmp(argv[2], "deep") == 0) {
		gate();
		free(nested(n));
		_exit(0);
	}
	if (strcmp(argv[2], "bind") == 0) {
		gate();
		binding_steps();
		_exit(0);
	}
	rounds = number(argv[2]);
	if (n < 1 || n > 64)
		die("from 1 to 64 threads");
	pthread_barrier_init(&start, NULL, (unsigned)n);
	gate();
	for (i = 1; i < n; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)(i * rounds)))
			die("no thread");
	run(NULL);
	for (i = 1; i < n; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}
