// SPDX-License-Identifier: Apache-2.0
/*
 * sites SEED BATCHES PERIOD: after the gate, BATCHES batches of allocations at eight call sites,
 * which are chosen at random by SEED, each with a share that depends on SEED, too. The last site is
 * used in every eighth batch only. A batch begins every PERIOD microseconds, as if it was a request,
 * so that the program makes as many calls in a time when it is slowed down. A site allocates blocks
 * of a size of its own, from 1000 to 1007 bytes, and frees them.
 *
 * The JSON has how many blocks each site has allocated.
 */
#include "prog.h"
#include <time.h>

enum { SITES = 8, BATCH = 25 };

static unsigned long counts[SITES];
static uint64_t state;

static unsigned below(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

#define SITE(n)                             \
	static NOINLINE void site_##n(void) \
	{                                   \
		free(malloc(1000 + n));     \
		counts[n]++;                \
	}
SITE(0)
SITE(1)
SITE(2)
SITE(3)
SITE(4)
SITE(5)
SITE(6)
SITE(7)

static void (*const sites[SITES])(void) = { site_0, site_1, site_2, site_3,
					    site_4, site_5, site_6, site_7 };

int main(int argc, char **argv)
{
	struct timespec next;
	unsigned long batches, period, i, j;
	unsigned shares[SITES], all = 0, at, k;

	if (argc != 4)
		die("usage: sites SEED BATCHES PERIOD");
	state = (number(argv[1]) + 1) * 0x9e3779b97f4a7c15;
	batches = number(argv[2]);
	period = number(argv[3]);
	for (k = 0; k < SITES; k++)
		all += shares[k] = 1 + below(20);
	gate();
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (i = 0; i < batches; i++) {
		for (j = 0; j < BATCH; j++) {
			at = below(all);
			for (k = 0; at >= shares[k]; k++)
				at -= shares[k];
			if (k < SITES - 1 || i % 8 == 0)
				sites[k]();
		}
		next.tv_nsec += (long)period * 1000;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	printf("[%lu", counts[0]);
	for (k = 1; k < SITES; k++)
		printf(",%lu", counts[k]);
	printf("]\n");
	return 0;
}
