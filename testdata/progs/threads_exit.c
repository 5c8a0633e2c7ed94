// SPDX-License-Identifier: Apache-2.0
/*
 * threads_exit ROUNDS: eight threads that end, logged.
 *
 * After the gate each thread makes ROUNDS times malloc(24), malloc(40) and malloc(1032) and
 * frees the three, so that its cache of small blocks is filled. The C library empties it when
 * the thread ends: those frees are not the program's and are not logged. Then the thread makes
 * malloc(200), which a destructor of thread-specific data frees, and malloc(300), which is left.
 * Threads with an odd number end with pthread_exit, the others by returning. So there are
 * 8 * (6 * ROUNDS + 3) calls, and 8 blocks of 300 bytes are left.
 *
 * The threads exist before the gate. What glibc loads at the first pthread_exit is loaded
 * before, and the stacks are small enough for its cache, so that no other call reaches the
 * allocator.
 */
#include "prog.h"
#include <pthread.h>

enum { THREADS = 8 };

static pthread_barrier_t start;
static pthread_key_t key;
static struct ledger *ledgers;
static unsigned long rounds;
static __thread struct ledger *mine;

static void destroy(void *block)
{
	do_free(mine, block);
}

static void work(struct ledger *l)
{
	unsigned long i;

	for (i = 0; i < rounds; i++) {
		void *a = do_malloc(l, 24);
		void *b = do_malloc(l, 40);
		void *c = do_malloc(l, 1032);

		do_free(l, a);
		do_free(l, b);
		do_free(l, c);
	}
	pthread_setspecific(key, do_malloc(l, 200));
	do_malloc(l, 300);
}

static void *run(void *arg)
{
	struct ledger *l = (struct ledger *)arg;

	mine = l;
	l->tid = thread_id();
	pthread_barrier_wait(&start);
	work(l);
	if ((l - ledgers) % 2)
		pthread_exit(NULL);
	return NULL;
}

static void *leave(void *arg)
{
	pthread_exit(arg);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS], first;
	pthread_attr_t attributes;
	int i;

	if (argc < 2)
		die("usage: threads_exit ROUNDS");
	rounds = number(argv[1]);
	pthread_key_create(&key, destroy);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	if (pthread_create(&first, &attributes, leave, NULL))
		die("no thread");
	pthread_join(first, NULL);
	ledgers = new_ledgers(THREADS);
	pthread_barrier_init(&start, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++) {
		ledger_open(&ledgers[i], 6 * rounds + 3);
		if (pthread_create(&threads[i], &attributes, run, &ledgers[i]))
			die("no thread");
	}
	gate();
	pthread_barrier_wait(&start);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	report(ledgers, THREADS, "");
	_exit(0);
}
