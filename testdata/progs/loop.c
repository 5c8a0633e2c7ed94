// SPDX-License-Identifier: Apache-2.0
/*
 * loop THREADS [PAIRS [SIZE [DEPTH]]]: malloc(SIZE) and free of the block, in a loop below
 * DEPTH more functions.
 *
 * Each thread makes PAIRS pairs. With PAIRS 0 (the default) it continues until a byte or the
 * end of file follows the gate's byte, or until SIGTERM or SIGINT. SIZE is 32 and DEPTH 0 by
 * default. The threads exist before the gate and have not ended when the program does:
 * nothing else reaches the allocator.
 *
 * The JSON also has "pairs", and the cost of the loop in nanoseconds: "cpu_ns",
 * user and system time of the threads together, "wall_ns", from the start of
 * the first to the end of the last, and "ns_per_pair", the CPU time of a pair.
 */
#include "prog.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

#ifndef MAKE /* loop_cxx has its own */
#define MAKE(size) malloc(size)
#define END(p, size) free(p)
#endif

struct worker {
	uint64_t pairs;
	uint64_t cpu_ns;
	char pad[48]; /* a cache line each */
};

static pthread_barrier_t start, end;
static unsigned long pairs, size = 32, depth;
static struct worker *workers;
static struct ledger *ledgers;
static volatile int stop;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* go_round makes the pairs, below the given number of functions. */
static __attribute__((noinline)) uint64_t go_round(unsigned long below)
{
	uint64_t n = 0;

	if (below > 0) {
		n = go_round(below - 1);
		/* Not a jump: the frame is needed after the call. */
		__asm__ volatile("" : "+r"(n));
		return n;
	}
	while (!stop && (pairs == 0 || n < pairs)) {
		void *p = MAKE(size);

		__asm__ volatile("" : : "r"(p) : "memory");
		END(p, size);
		n++;
	}
	return n;
}

static void *run(void *arg)
{
	struct worker *w = (struct worker *)arg;
	uint64_t n, before;

	ledgers[w - workers].tid = thread_id();
	pthread_barrier_wait(&start);
	before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	n = go_round(depth);
	w->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	w->pairs = n;
	pthread_barrier_wait(&end);
	return park();
}

/* await_end waits for a byte, the end of file, or a signal. */
static void await_end(const sigset_t *signals)
{
	struct pollfd fds[2];

	fds[0].fd = signalfd(-1, signals, SFD_CLOEXEC);
	fds[0].events = POLLIN;
	fds[1].fd = is_gate(GATE_GO, O_RDONLY) ? GATE_GO : -1;
	fds[1].events = POLLIN;
	if (fds[0].fd < 0)
		die("no signalfd");
	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	stop = 1;
}

int main(int argc, char **argv)
{
	unsigned long threads, i;
	uint64_t total = 0, cpu = 0, began;
	sigset_t signals;
	char more[160];

	if (argc < 2)
		die("usage: loop THREADS [PAIRS [SIZE [DEPTH]]]");
	threads = number(argv[1]);
	if (argc > 2)
		pairs = number(argv[2]);
	if (argc > 3)
		size = number(argv[3]);
	if (argc > 4)
		depth = number(argv[4]);
	if (pairs == 0) {
		sigemptyset(&signals);
		sigaddset(&signals, SIGTERM);
		sigaddset(&signals, SIGINT);
		pthread_sigmask(SIG_BLOCK, &signals, NULL);
	}
	ledgers = new_ledgers(threads);
	workers = (struct worker *)mmap(NULL, threads * sizeof(*workers), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (workers == MAP_FAILED)
		die("no memory for %lu threads", threads);
	pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
	for (i = 0; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, run, &workers[i]))
			die("no thread");
	}
	gate();
	began = clock_ns(CLOCK_MONOTONIC);
	pthread_barrier_wait(&start);
	if (pairs == 0)
		await_end(&signals);
	pthread_barrier_wait(&end);
	began = clock_ns(CLOCK_MONOTONIC) - began;
	for (i = 0; i < threads; i++) {
		struct ledger *l = &ledgers[i];

		l->done[FN_MALLOC] = l->done[FN_FREE] = workers[i].pairs;
		l->ops[OP_ALLOC] = l->ops[OP_FREE] = workers[i].pairs;
		l->bytes[FN_MALLOC] = workers[i].pairs * size;
		total += workers[i].pairs;
		cpu += workers[i].cpu_ns;
	}
	snprintf(more, sizeof(more),
		 "\"pairs\":%llu,\"cpu_ns\":%llu,\"wall_ns\":%llu,\"ns_per_pair\":%llu.%02llu",
		 (unsigned long long)total, (unsigned long long)cpu, (unsigned long long)began,
		 (unsigned long long)(total ? cpu / total : 0),
		 (unsigned long long)(total ? cpu % total * 100 / total : 0));
	report(ledgers, threads, more);
	_exit(0);
}
