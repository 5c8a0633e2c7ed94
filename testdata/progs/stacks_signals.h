/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signal handlers that allocate. They never interrupt the allocator.
 */
#ifndef STACKS_SIGNALS_H
#define STACKS_SIGNALS_H

#include <signal.h>
#include <time.h>

enum { SIG_PLAIN = SIGUSR1, SIG_ALTERNATE = SIGUSR2, SIG_TIMER = SIGALRM };

static __thread volatile unsigned long handled;
static __thread char *alternate; /* signal stack */

static void handler(int sig)
{
	void *p = malloc((size_t)sig + 30);

	OPAQUE(p);
	free(p);
	handled++;
}

/* A handler that is interrupted by the next one. */
static void nesting_handler(int sig)
{
	void *p = malloc((size_t)sig + 60);

	raise(SIG_PLAIN);
	free(p);
	handled++;
}

static void install(int sig, void (*function)(int), int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = function;
	action.sa_flags = flags;
	if (sigaction(sig, &action, NULL))
		die("sigaction");
}

static void signals_install(void)
{
	install(SIG_PLAIN, handler, SA_RESTART);
	install(SIG_ALTERNATE, nesting_handler, SA_ONSTACK | SA_RESTART);
	install(SIG_TIMER, handler, SA_RESTART);
}

/* signals_open sets up the thread's signal stack. */
static void signals_open(void)
{
	stack_t stack;

	alternate = (char *)malloc(64 << 10);
	memset(&stack, 0, sizeof(stack));
	stack.ss_sp = alternate;
	stack.ss_size = 64 << 10;
	if (sigaltstack(&stack, NULL))
		die("sigaltstack");
}

static void signals_close(void)
{
	stack_t stack;

	memset(&stack, 0, sizeof(stack));
	stack.ss_flags = SS_DISABLE;
	if (sigaltstack(&stack, NULL))
		die("sigaltstack");
	free(alternate);
}

static NOINLINE void below_raise(int sig)
{
	char room[100];

	USE(room);
	raise(sig);
	USE(room);
}

static NOINLINE void signals(void)
{
	below_raise(SIG_PLAIN);
	below_raise(SIG_ALTERNATE);
}

/* spin_leaf has no frame of its own, or only a part of one, at any instruction. */
static NOINLINE unsigned long spin_leaf(unsigned long n)
{
	unsigned long saved[8], i;

	for (i = 0; i < 8; i++)
		saved[i] = n + i;
	OPAQUE(n);
	for (i = 0; i < 8; i++)
		n ^= saved[(n + i) % 8];
	return n;
}

/*
 * spin calls a leaf, the vDSO and the C library. The function of the vDSO does not retry when the
 * clock changed in the meantime: a program that is stopped at each instruction of clock_gettime
 * may never leave it.
 */
static NOINLINE unsigned long spin(unsigned long n)
{
#ifdef __aarch64__
	/* Neither its vDSO nor its PLT has tables: backtrace() cannot unwind through them. */
	return spin_leaf(n) + 1;
#else
	time_t now = 0;

#ifndef __i386__ /* its vDSO has no call frame information for this */
	now = time(NULL);
#endif
	n = spin_leaf(n) + (unsigned long)now;
	return n + (unsigned long)strlen((const char *)&"spin"[n % 4]);
#endif
}

/* spin_at_clock reads the clock, which loops in the vDSO. */
static NOINLINE unsigned long spin_at_clock(unsigned long n)
{
	struct timespec now = { 0, 0 };

#ifdef __x86_64__
	clock_gettime(CLOCK_MONOTONIC, &now);
#endif
	return n + (unsigned long)now.tv_nsec;
}

/* signals_by_timer makes a timer interrupt the spins n times, at any place. */
static NOINLINE void signals_by_timer(unsigned long n)
{
	struct sigevent event;
	struct itimerspec once;
	timer_t timer;
	unsigned long i, sum = spin_at_clock(spin(0)); /* binds the functions that they call */

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIG_TIMER;
	event._sigev_un._tid = thread_id();
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		die("timer_create");
	memset(&once, 0, sizeof(once));
	for (i = 0; i < n; i++) {
		unsigned long before = handled;

		once.it_value.tv_nsec = (long)(20000 + i % 7 * 1313);
		if (timer_settime(timer, 0, &once, NULL))
			die("timer_settime");
		while (handled == before)
			sum = spin_at_clock(spin(sum));
	}
	timer_delete(timer);
	OPAQUE(sum);
}

#endif /* STACKS_SIGNALS_H */
