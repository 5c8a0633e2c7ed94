// SPDX-License-Identifier: Apache-2.0
/*
 * leaderless PAIRS: a process whose main thread ends before the others.
 *
 * After the gate the main thread makes PAIRS times malloc(48) and free, and ends with
 * pthread_exit. Then another thread makes pairs, until a byte or the end of file follows the
 * gate's byte. Its sizes count them: 48, 49 and so on, and 48 again after SIZES of them.
 */
#include "prog.h"
#include <poll.h>
#include <pthread.h>

#define SIZES 4096

static struct ledger ledgers[2];
static pthread_t first;

static void pair(struct ledger *l, unsigned long n)
{
	do_free(l, do_malloc(l, 48 + n % SIZES));
}

static void *other(void *arg)
{
	struct pollfd gate = { .fd = GATE_GO, .events = POLLIN };
	unsigned long n = 0;

	(void)arg;
	ledgers[1].tid = thread_id();
	pthread_join(first, NULL);
	while (poll(&gate, 1, 0) == 0)
		pair(&ledgers[1], n++);
	report(ledgers, 2, "");
	_exit(0);
}

static void *leave(void *arg)
{
	pthread_exit(arg);
}

int main(int argc, char **argv)
{
	unsigned long pairs, i;
	pthread_t t;

	if (argc < 2)
		die("usage: leaderless PAIRS");
	pairs = number(argv[1]);
	first = pthread_self();
	ledgers[0].tid = thread_id();
	/* Load what glibc loads at the first pthread_exit before the gate. */
	if (pthread_create(&t, NULL, leave, NULL))
		die("no thread");
	pthread_join(t, NULL);
	if (pthread_create(&t, NULL, other, NULL))
		die("no thread");
	gate();
	for (i = 0; i < pairs; i++)
		pair(&ledgers[0], 0);
	pthread_exit(NULL);
}
