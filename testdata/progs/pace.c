// SPDX-License-Identifier: Apache-2.0
/*
 * pace compute|calls|asks|reads|switches|locks|copies|opens|threads N: the cost of an
 * operation, for benchmarks.
 *
 * After the gate it does N operations: a thousand steps of a computation; a system call that
 * fails at once (close of no descriptor), does nothing (getppid) or reads a byte of its
 * program's file; a byte to another thread on the same processor and one back, which takes at
 * most two switches each way; locking and unlocking; copying 32 bytes; opening and closing a
 * file; or making a thread and waiting for its end. Output: "pace NS", the CPU time of the
 * process for one operation.
 */
#include "prog.h"
#include <pthread.h>
#include <sched.h>
#include <time.h>

static int there[2], back[2];

static void *echo(void *arg)
{
	char c;

	while (read(there[0], &c, 1) == 1)
		if (write(back[1], &c, 1) != 1)
			break;
	return arg;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void compute(unsigned long n)
{
	volatile unsigned sum = 1;
	unsigned long i, j;

	for (i = 0; i < n; i++) {
		unsigned x = sum;

		for (j = 0; j < 1000; j++)
			x = x * 1664525U + 1013904223U;
		sum = x;
	}
}

static void calls(unsigned long n)
{
	while (n-- > 0)
		syscall(SYS_close, -1);
}

static void asks(unsigned long n)
{
	while (n-- > 0)
		syscall(SYS_getppid);
}

static void reads(unsigned long n)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	char c;

	while (n-- > 0)
		if (pread(fd, &c, 1, 0) != 1)
			die("cannot read");
}

static void switches(unsigned long n)
{
	char c = 0;

	while (n-- > 0)
		if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			die("no echo");
}

static void locks(unsigned long n)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	while (n-- > 0) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

static void copies(unsigned long n)
{
	static char from[32], to[32];
	void *(*volatile copy)(void *, const void *, size_t) = memcpy;

	while (n-- > 0)
		copy(to, from, sizeof(to));
}

static void opens(unsigned long n)
{
	while (n-- > 0)
		close(open("/dev/null", O_RDONLY));
}

static void *nothing(void *arg)
{
	return arg;
}

static void threads(unsigned long n)
{
	pthread_t thread;

	while (n-- > 0)
		if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
			die("no thread");
}

int main(int argc, char **argv)
{
	void (*work)(unsigned long) = NULL;
	cpu_set_t one;
	pthread_t other;
	unsigned long n;
	double began;

	if (argc != 3)
		die("usage: pace compute|calls|asks|reads|switches|locks|copies|opens|threads N");
	n = number(argv[2]);
	if (!strcmp(argv[1], "compute"))
		work = compute;
	else if (!strcmp(argv[1], "calls"))
		work = calls;
	else if (!strcmp(argv[1], "asks"))
		work = asks;
	else if (!strcmp(argv[1], "reads"))
		work = reads;
	else if (!strcmp(argv[1], "switches"))
		work = switches;
	else if (!strcmp(argv[1], "locks"))
		work = locks;
	else if (!strcmp(argv[1], "copies"))
		work = copies;
	else if (!strcmp(argv[1], "opens"))
		work = opens;
	else if (!strcmp(argv[1], "threads"))
		work = threads;
	else
		die("no such work");
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (work == switches && (sched_setaffinity(0, sizeof(one), &one) || pipe(there) ||
				 pipe(back) || pthread_create(&other, NULL, echo, NULL)))
		die("no other thread");
	gate();
	began = now();
	work(n);
	out("pace %.1f\n", (now() - began) / (double)n);
	out_flush();
	return 0;
}
