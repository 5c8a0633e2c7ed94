// SPDX-License-Identifier: Apache-2.0
/*
 * maploop own|arena N: a thread that gets memory from the system N times.
 *
 * own: mmap and munmap of a page, by the program itself. arena: malloc(1000) of blocks that
 * are left, in an arena that glibc makes accessible page by page, so that every fourth call
 * causes an mprotect; the first block is made before the gate.
 *
 * The JSON has "pairs", N, and "ns_per_pair", the CPU time of each in nanoseconds.
 */
#include "prog.h"
#include <pthread.h>
#include <time.h>

static struct ledger ledger;
static unsigned long count;
static int own;
static char more[128];

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void map_page(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || munmap(p, 4096))
		die("cannot map a page");
}

static void *run(void *arg)
{
	uint64_t cpu;
	unsigned long i;

	ledger.tid = thread_id();
	do_malloc(&ledger, 1000);
	gate();
	cpu = cpu_ns();
	for (i = 0; i < count; i++) {
		if (own)
			map_page();
		else if (!malloc(1000))
			die("no memory");
	}
	cpu = cpu_ns() - cpu;
	snprintf(more, sizeof(more), "\"pairs\":%lu,\"ns_per_pair\":%llu", count,
		 (unsigned long long)(cpu / (count ? count : 1)));
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (argc < 3)
		die("usage: maploop own|arena N");
	own = strcmp(argv[1], "own") == 0;
	count = number(argv[2]);
	if (pthread_create(&t, NULL, run, NULL) || pthread_join(t, NULL))
		die("no thread");
	report(&ledger, 1, more);
	_exit(0);
}
