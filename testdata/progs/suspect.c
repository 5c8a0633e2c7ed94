// SPDX-License-Identifier: Apache-2.0
/*
 * suspect: a leak next to a cache that is full.
 *
 * After the gate it fills a cache of 64 blocks of 4000 bytes at once. Then, every millisecond,
 * it replaces the eight oldest blocks of the cache and leaks one block of 100 bytes, until a
 * byte or the end of file follows the gate's byte. Output: "leaked N", the number of leaks.
 */
#include "prog.h"
#include <poll.h>

enum { ENTRIES = 64, REPLACED = 8 };

static void *cache[ENTRIES];
static void *volatile last; /* so that the compiler does not omit the leak */

static NOINLINE void cache_put(unsigned long n)
{
	free(cache[n % ENTRIES]);
	cache[n % ENTRIES] = malloc(4000);
}

static NOINLINE void leak_one(void)
{
	last = malloc(100);
}

int main(void)
{
	struct pollfd go = { .fd = GATE_GO, .events = POLLIN };
	unsigned long puts = 0, leaks = 0, i;

	gate();
	while (puts < ENTRIES)
		cache_put(puts++);
	while (poll(&go, 1, 1) <= 0) {
		for (i = 0; i < REPLACED; i++)
			cache_put(puts++);
		leak_one();
		leaks++;
	}
	out("leaked %lu\n", leaks);
	out_flush();
	_exit(0);
}
