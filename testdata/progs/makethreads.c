// SPDX-License-Identifier: Apache-2.0
/*
 * makethreads: threads that start and end all the time, each with its own name.
 *
 * One thread makes others, about one per millisecond, which name themselves "tID" after their
 * IDs and stay until there are 32 younger ones. After the gate no more are made; each that is
 * left makes malloc(100) and ends, and then the process ends.
 */
#include "prog.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <time.h>

enum { LIVE = 32 };

static sem_t leave[LIVE];
static pthread_t threads[LIVE];
static int over;

static void *run(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "t%d", thread_id());
	if (prctl(PR_SET_NAME, name, 0, 0, 0))
		die("no name");
	while (sem_wait(&leave[(long)arg]))
		;
	if (__atomic_load_n(&over, __ATOMIC_SEQ_CST) && !malloc(100))
		die("no memory");
	return NULL;
}

static void *make(void *arg)
{
	const struct timespec pace = { 0, 1000000 };
	unsigned long i;

	for (i = 0; !__atomic_load_n(&over, __ATOMIC_SEQ_CST); i++) {
		long at = i % LIVE;

		if (i >= LIVE) {
			sem_post(&leave[at]);
			pthread_join(threads[at], NULL);
		}
		if (pthread_create(&threads[at], NULL, run, (void *)at))
			die("no thread");
		nanosleep(&pace, NULL);
	}
	for (i = i < LIVE ? i : LIVE; i-- > 0;) {
		sem_post(&leave[i]);
		pthread_join(threads[i], NULL);
	}
	return arg;
}

int main(void)
{
	pthread_t maker;
	int i;

	for (i = 0; i < LIVE; i++)
		sem_init(&leave[i], 0, 0);
	if (pthread_create(&maker, NULL, make, NULL))
		die("no thread");
	gate();
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	pthread_join(maker, NULL);
	_exit(0);
}
