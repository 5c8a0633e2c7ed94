// SPDX-License-Identifier: Apache-2.0
/*
 * storm LOG BURSTS THREADS: many threads that allocate at the same time, below stacks that
 * differ in depth, frames and size.
 *
 * After the gate each of THREADS threads makes BURSTS bursts. A burst is a path down through 4
 * to 59 frames that the thread's own random numbers choose, with some mallocs and frees from one
 * place at its end. Its stack is found once, with backtrace(), and logged for each call, so that
 * the threads are mostly in the allocator: a tracer is interrupted there. Every other thread
 * sleeps for a moment between bursts, and interrupts another one when it wakes up.
 *
 * The log is that of stackfile.h.
 */
#include "stackfile.h"
#include <execinfo.h>
#include <pthread.h>
#include <time.h>

enum { BURST = 12, MOST_FRAMES = 128 };

#define USE(memory) __asm__ volatile("" : : "r"(memory) : "memory")

static unsigned long bursts;
static pthread_barrier_t start;

struct path {
	uint64_t seed;
	unsigned left; /* frames still to make */
};

static ALWAYS_INLINE uint64_t draw(struct path *p)
{
	p->seed ^= p->seed << 13;
	p->seed ^= p->seed >> 7;
	p->seed ^= p->seed << 17;
	return p->seed;
}

/* bottom is where all calls come from. */
static NOINLINE void bottom(struct path *p)
{
	void *frames[MOST_FRAMES];
	int i, n = backtrace(frames, MOST_FRAMES);

	if (n < 4 || n == MOST_FRAMES)
		die("backtrace() finds %d frames", n);
	for (i = 0; i < BURST; i++) {
		size_t size = draw(p) % 2000 + 1;
		void *block = malloc(size);

		log_add(OP_ALLOC, 0, (uintptr_t)block, size, frames, (size_t)n);
		log_add(OP_FREE, (uintptr_t)block, 0, 0, frames, (size_t)n);
		free(block);
	}
}

static ALWAYS_INLINE void descend(struct path *p);

#define STEP(name, words)                         \
	static NOINLINE void name(struct path *p) \
	{                                         \
		uint64_t room[words];             \
                                                  \
		USE(room);                        \
		descend(p);                       \
		USE(room);                        \
	}

STEP(step_small, 1)
STEP(step_middle, 5)
STEP(step_large, 12)
STEP(step_huge, 40)

static ALWAYS_INLINE void descend(struct path *p)
{
	if (!p->left) {
		bottom(p);
		return;
	}
	p->left--;
	switch (draw(p) % 8) {
	case 0:
		step_huge(p);
		break;
	case 1:
	case 2:
		step_large(p);
		break;
	case 3:
	case 4:
		step_middle(p);
		break;
	default:
		step_small(p);
	}
}

static void *run(void *number)
{
	unsigned long i, own = (unsigned long)(uintptr_t)number;
	struct path p = { .seed = 0x9e3779b97f4a7c15 * (own + 1) };
	const struct timespec moment = { .tv_nsec = 50000 };

	pthread_barrier_wait(&start);
	for (i = 0; i < bursts; i++) {
		p.left = draw(&p) % 56 + 1;
		descend(&p);
		if (own % 2)
			(void)nanosleep(&moment, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static pthread_t threads[64];
	void *first[2];
	unsigned long n, i;

	if (argc < 4)
		die("usage: storm LOG BURSTS THREADS");
	bursts = number(argv[2]);
	n = number(argv[3]);
	if (n < 1 || n > 64)
		die("from 1 to 64 threads");
	(void)backtrace(first, 2); /* loads what backtrace needs */
	log_open(argv[1]);
	pthread_barrier_init(&start, NULL, (unsigned)n);
	gate();
	for (i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i))
			die("no thread");
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}
