// SPDX-License-Identifier: Apache-2.0
/*
 * realloc_race PAIRS ROUNDS [log]: blocks that move while other threads get the addresses
 * that they leave.
 *
 * There are PAIRS growing threads and as many taking ones. After the gate, a
 * growing thread does ROUNDS times: malloc(2048), then seven times realloc to
 * twice the size, up to 256 KiB (which glibc maps), and free. A taking one does
 * ROUNDS times: malloc of 2048, 4096 … 256 KiB in turn, eight blocks, then
 * frees the eight. So there are PAIRS * ROUNDS * (9 + 16) calls, and no block is
 * left. All sizes are beyond glibc's thread caches, and all threads use one
 * arena, so that an address that one leaves is soon given to another.
 */
#include "prog.h"
#include <malloc.h>
#include <pthread.h>

enum { SIZES = 8, SMALLEST = 2048 };

static pthread_barrier_t start, end;
static unsigned long pairs, rounds;
static struct ledger *ledgers;

static void grow(struct ledger *l)
{
	void *p = do_malloc(l, SMALLEST);
	int i;

	for (i = 1; i < SIZES; i++)
		p = do_realloc(l, p, (size_t)SMALLEST << i);
	do_free(l, p);
}

static void take(struct ledger *l)
{
	void *blocks[SIZES];
	int i;

	for (i = 0; i < SIZES; i++)
		blocks[i] = do_malloc(l, (size_t)SMALLEST << i);
	for (i = 0; i < SIZES; i++)
		do_free(l, blocks[i]);
}

static void *run(void *arg)
{
	struct ledger *l = (struct ledger *)arg;
	int grows = (unsigned long)(l - ledgers) < pairs;
	unsigned long i;

	l->tid = thread_id();
	pthread_barrier_wait(&start);
	for (i = 0; i < rounds; i++) {
		if (grows)
			grow(l);
		else
			take(l);
	}
	pthread_barrier_wait(&end);
	return park();
}

int main(int argc, char **argv)
{
	unsigned long i;
	int log;

	if (argc < 3)
		die("usage: realloc_race PAIRS ROUNDS [log]");
	pairs = number(argv[1]);
	rounds = number(argv[2]);
	log = argc > 3 && strcmp(argv[3], "log") == 0;
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1);
#endif
	ledgers = new_ledgers(2 * pairs);
	pthread_barrier_init(&start, NULL, (unsigned)(2 * pairs) + 1);
	pthread_barrier_init(&end, NULL, (unsigned)(2 * pairs) + 1);
	for (i = 0; i < 2 * pairs; i++) {
		pthread_t t;

		ledger_open(&ledgers[i], log ? (i < pairs ? 9 : 16) * rounds : 0);
		if (pthread_create(&t, NULL, run, &ledgers[i]))
			die("no thread");
	}
	gate();
	pthread_barrier_wait(&start);
	pthread_barrier_wait(&end);
	report(ledgers, 2 * pairs, "");
	_exit(0);
}
