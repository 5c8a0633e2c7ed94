// SPDX-License-Identifier: Apache-2.0
/*
 * heapinfo THREADS: a heap of all kinds of blocks, and the result of mallinfo2 for it.
 *
 * After the gate THREADS threads, and the program itself, allocate and free so that blocks
 * are left in use, in the caches of threads, in fast bins, in bins of small and large sizes,
 * and in mappings of their own, some of them resized or aligned. Then nothing changes any
 * more, the output is written, and the program waits at the gate again.
 *
 * Output: for each field of mallinfo2 "NAME VALUE", and "break VALUE".
 */
#include "prog.h"
#include <malloc.h>
#include <pthread.h>

enum { SMALL = 200, MAPPED = 5 };

static pthread_barrier_t done;

static void work(unsigned seed)
{
	static _Thread_local char *small[SMALL], *fast[SMALL], *mapped[MAPPED];
	unsigned i;

	for (i = 0; i < SMALL; i++) {
		small[i] = malloc(16 + (i * 37 + seed) % 3000);
		fast[i] = malloc(40);
		if (!small[i] || !fast[i])
			die("no memory");
	}
	for (i = 0; i < MAPPED; i++)
		mapped[i] = malloc((300 + 10 * i) * 1024UL);
	if (posix_memalign((void **)&mapped[0], 1 << 16, 500000) != 0)
		die("no aligned memory");
	mapped[1] = realloc(mapped[1], 800000);
	free(mapped[2]);
	for (i = 0; i < SMALL; i += 3)
		free(small[i]);
	/* Moves what was freed into the bins of its sizes. */
	if (!malloc(5000))
		die("no memory");
	for (i = 1; i < SMALL; i += 3)
		free(small[i]);
	for (i = 0; i < SMALL; i++)
		if (i % 4)
			free(fast[i]);
}

static void *run(void *arg)
{
	work((unsigned)(uintptr_t)arg);
	pthread_barrier_wait(&done);
	return park();
}

int main(int argc, char **argv)
{
	unsigned long threads, i;
	pthread_t thread;

	if (argc < 2)
		die("usage: heapinfo THREADS");
	threads = number(argv[1]);
	gate();
	pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
	for (i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, run, (void *)(i + 1)) != 0)
			die("no thread");
	work(0);
	pthread_barrier_wait(&done);
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
	{
		struct mallinfo2 m = mallinfo2();

		out("arena %zu\nordblks %zu\nsmblks %zu\nhblks %zu\nhblkhd %zu\n", m.arena,
		    m.ordblks, m.smblks, m.hblks, m.hblkhd);
		out("usmblks %zu\nfsmblks %zu\nuordblks %zu\nfordblks %zu\nkeepcost %zu\n",
		    m.usmblks, m.fsmblks, m.uordblks, m.fordblks, m.keepcost);
	}
#endif
	out("break %lu\n", (unsigned long)(uintptr_t)sbrk(0));
	gate();
	out_flush();
	return 0;
}
