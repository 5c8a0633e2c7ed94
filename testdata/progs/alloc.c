// SPDX-License-Identifier: Apache-2.0
/*
 * alloc THREADS ROUNDS [log]: a known number of calls.
 *
 * After the gate each thread makes ROUNDS times these five calls, and then one
 * more malloc whose block it keeps:
 *
 *	p = malloc(16 + round % 256)
 *	q = calloc(1 + round % 7, 24)
 *	p = realloc(p, 512 + round % 1024)
 *	free(q)
 *	free(p)
 *	malloc(1000 + the number of the thread, from 0)
 *
 * So there are THREADS * (5 * ROUNDS + 1) calls, and THREADS blocks are left.
 * The threads exist before the gate and have not ended when the program does,
 * so that nothing but these calls reaches the allocator in between.
 */
#include "prog.h"
#include <pthread.h>

static pthread_barrier_t start, end;
static unsigned long rounds;

static void work(struct ledger *l, unsigned long number)
{
	unsigned long i;

	for (i = 0; i < rounds; i++) {
		void *p = do_malloc(l, 16 + i % 256);
		void *q = do_calloc(l, 1 + i % 7, 24);

		p = do_realloc(l, p, 512 + i % 1024);
		do_free(l, q);
		do_free(l, p);
	}
	do_malloc(l, 1000 + number);
}

static struct ledger *ledgers;

static void *run(void *arg)
{
	struct ledger *l = (struct ledger *)arg;

	l->tid = thread_id();
	pthread_barrier_wait(&start);
	work(l, (unsigned long)(l - ledgers));
	pthread_barrier_wait(&end);
	return park();
}

int main(int argc, char **argv)
{
	unsigned long threads, i;
	int log;

	if (argc < 3)
		die("usage: alloc THREADS ROUNDS [log]");
	threads = number(argv[1]);
	rounds = number(argv[2]);
	log = argc > 3 && strcmp(argv[3], "log") == 0;
	ledgers = new_ledgers(threads);
	pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
	for (i = 0; i < threads; i++) {
		pthread_t t;

		ledger_open(&ledgers[i], log ? 5 * rounds + 1 : 0);
		if (pthread_create(&t, NULL, run, &ledgers[i]))
			die("no thread");
	}
	gate();
	pthread_barrier_wait(&start);
	pthread_barrier_wait(&end);
	report(ledgers, threads, "");
	_exit(0);
}
