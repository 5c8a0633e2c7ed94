// SPDX-License-Identifier: Apache-2.0
/*
 * replay PROGRAM none|first|all: makes a trace's calls of malloc and related
 * functions, thread by thread, and prints the time and memory that they took.
 * Go package internal/replay writes PROGRAM and describes its format.
 *
 * During the replay only these calls reach malloc; all other memory is allocated
 * before. The results are lines "NAME NUMBER" and finally "malloc PATH", the file
 * whose malloc was used.
 */
#define _GNU_SOURCE
#include "program.h"
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

enum touch { NONE, FIRST, ALL };
enum { PAGE = 4096, SPINS = 200 };

static enum touch touch;
static _Atomic uint32_t ready, go, done;

/* publish announces that the lane has done its first n words. */
static void publish(struct lane *l, uint32_t n)
{
	atomic_store(&l->progress, n);
	if (atomic_load(&l->wanted) > n)
		return;
	atomic_store(&l->wanted, UINT32_MAX);
	atomic_fetch_add(&l->alarm, 1);
	futex(&l->alarm, FUTEX_WAKE, INT32_MAX);
}

/*
 * wait_for waits until another lane has done its first n words: first it spins,
 * then it sleeps. It sets wanted before it reads progress, and publish sets
 * progress before it reads wanted, so at least one of them sees the other's value.
 */
static void wait_for(struct lane *l, uint32_t n)
{
	int i;

	for (i = 0; i < SPINS; i++) {
		if (atomic_load_explicit(&l->progress, memory_order_acquire) >= n)
			return;
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#endif
	}
	while (1) {
		uint32_t alarm = atomic_load(&l->alarm), least = atomic_load(&l->wanted);

		while (least > n && !atomic_compare_exchange_weak(&l->wanted, &least, n))
			;
		if (atomic_load(&l->progress) >= n)
			return;
		futex(&l->alarm, FUTEX_WAIT, alarm);
	}
}

/* use writes to the bytes [from, size) of a block, or to one byte of each page. */
static inline void use(void *block, size_t from, size_t size)
{
	volatile char *p = (volatile char *)block + from, *end = (volatile char *)block + size;

	if (from >= size)
		return;
	if (touch == ALL) {
		memset((char *)block + from, 0x5a, size - from);
	} else if (touch == FIRST) {
		*p = 0x5a;
		for (p += PAGE - (uintptr_t)p % PAGE; p < end; p += PAGE)
			*p = 0x5a;
	}
}

/* look_at_live adds up the live bytes of all lanes. */
static inline void look_at_live(struct lane *l)
{
	int64_t sum = 0;
	uint64_t i;

	for (i = 0; i < lane_count; i++)
		sum += atomic_load_explicit(&lanes[i].live, memory_order_relaxed);
	if (sum > l->most)
		l->most = sum;
}

/* run executes the words of a lane. */
static void run(struct lane *l)
{
	/* A single lane samples the live bytes after each call. */
	const uint64_t pause = lane_count == 1 ? 1 : lane_count < 32 ? 256 : 8 * lane_count;
	const uint64_t *p = l->words;
	uint64_t turn = pause;
	int64_t live = 0;

	while (1) {
		uint64_t w = *p++;
		uint64_t number = w >> SLOT_SHIFT & SLOT_MASK;
		enum code code = w & (SIGNAL - 1);
		size_t size = w >> SIZE_SHIFT, kept = 0;
		void *block = NULL;
		struct slot *s;

		if (code == WAIT) {
			wait_for(&lanes[number], (uint32_t)size);
			continue;
		}
		s = &slots[number];
		if (size == WIDE)
			size = *p++;
		switch (code) {
		case FREE:
			free(s->block);
			live -= (int64_t)s->size;
			s->block = NULL;
			s->size = 0;
			goto done;
		case MALLOC:
			block = malloc(size);
			break;
		case CALLOC:
			block = calloc(1, size);
			break;
		case REALLOC:
			kept = s->size;
			live -= (int64_t)kept;
			block = realloc(s->block, size);
			if (!block && size > 0) {
				l->failed++;
				block = s->block;
				size = kept;
			}
			break;
		case MEMALIGN:
			block = memalign(*p++, size);
			break;
		case POSIX_MEMALIGN:
			if (posix_memalign(&block, *p++, size))
				block = NULL;
			break;
		case ALIGNED_ALLOC:
			block = aligned_alloc(*p++, size);
			break;
		default:
			return;
		}
		if (block) {
			use(block, kept, size);
		} else {
			l->failed += size > 0;
			size = 0;
		}
		s->block = block;
		s->size = size;
		live += (int64_t)size;
	done:
		atomic_store_explicit(&l->live, live, memory_order_relaxed);
		if (--turn == 0) {
			look_at_live(l);
			turn = pause;
		}
		if (w & SIGNAL)
			publish(l, (uint32_t)(p - l->words));
	}
}

static void *start(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "replay %hu", (unsigned short)((struct lane *)arg - lanes));
	pthread_setname_np(pthread_self(), name);
	count_to(&ready, (uint32_t)lane_count);
	await(&go, 1);
	run(arg);
	count_to(&done, (uint32_t)lane_count);
	/* Threads do not end: that would free their memory. */
	await(&go, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long long i, wall, cpu, faults, base, before, failed = 0;
	uint8_t used[CODES] = { [MALLOC] = 1 };
	long long most = 0;

	if (argc == 3 && strcmp(argv[2], "first") == 0)
		touch = FIRST;
	else if (argc == 3 && strcmp(argv[2], "all") == 0)
		touch = ALL;
	else if (argc != 3 || strcmp(argv[2], "none") != 0)
		die("usage: replay PROGRAM none|first|all");
	read_program(argv[1], used);
	for (i = FREE; i < CODES; i++)
		if (used[i] && strcmp(origin(names[i]), origin("malloc")) != 0)
			die("%s is from %s, but malloc is from %s", names[i], origin(names[i]),
			    origin("malloc"));
	for (i = 1; i < lane_count; i++) {
		pthread_t thread;
		int error = pthread_create(&thread, NULL, start, &lanes[i]);

		if (error)
			die("starting thread %llu: %s", i, strerror(error));
	}
	count_to(&ready, (uint32_t)lane_count);
	await(&ready, (uint32_t)lane_count);
	reset_peak();
	before = status("VmHWM:");
	base = status("VmRSS:");
	faults = minor_faults();
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	wall = clock_ns(CLOCK_MONOTONIC);
	count_to(&go, 1);
	run(&lanes[0]);
	count_to(&done, (uint32_t)lane_count);
	await(&done, (uint32_t)lane_count);
	wall = clock_ns(CLOCK_MONOTONIC) - wall;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	faults = minor_faults() - faults;
	for (i = 0; i < lane_count; i++) {
		most = lanes[i].most > most ? lanes[i].most : most;
		failed += lanes[i].failed;
	}
	report("wall_ns %llu\ncpu_ns %llu\nfaults %llu\nfailed %llu\nlive %lld\n", wall, cpu,
	       faults, failed, most);
	report("rss_before %llu\npeak_before %llu\nrss_after %llu\npeak %llu\nmalloc %s\n", base,
	       before, status("VmRSS:"), status("VmHWM:"), origin("malloc"));
	_exit(0);
}
