/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal at every single instruction, so that prologues, epilogues, PLT entries and the vDSO
 * are interrupted at every place.
 */
#ifndef STACKS_STEPS_H
#define STACKS_STEPS_H

#if (defined(__x86_64__) || defined(__i386__)) && !defined(STEP_BY_PTRACE)

/* One handler sets the processor's trap flag, and the last of the next ones clears it. */

enum { SIG_BEGIN = SIGWINCH, TRAP_FLAG = 0x100 };

static __thread volatile int stepping;

static void begin_steps(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void step(int sig, siginfo_t *info, void *context)
{
	void *p;

	(void)info;
	if (!stepping) {
		((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
		return;
	}
	p = malloc((size_t)sig + 90);
	OPAQUE(p);
	free(p);
}

static void steps_install(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_flags = SA_SIGINFO | SA_RESTART;
	action.sa_sigaction = begin_steps;
	if (sigaction(SIG_BEGIN, &action, NULL))
		die("sigaction");
	action.sa_sigaction = step;
	if (sigaction(SIGTRAP, &action, NULL))
		die("sigaction");
}

static ALWAYS_INLINE void steps_begin(void)
{
	stepping = 1;
	raise(SIG_BEGIN);
}

static ALWAYS_INLINE void steps_end(void)
{
	stepping = 0;
}

#else
#include "stacks_stepper.h"
#endif

static NOINLINE void *no_block(size_t n)
{
	OPAQUE(n);
	return NULL;
}

static NOINLINE unsigned long aligned_leaf(unsigned long n)
{
	char room[64] __attribute__((aligned(64)));
	char *more = (char *)alloca(n % 100 + 1);

	USE(more);
	(void)through_pointer(no_block, n);
	USE(room);
	return n + 1;
}

/* search is bsearch, on arm64 not called through the PLT: see spin. */
#ifdef __aarch64__
static void *(*volatile search)(const void *key, const void *base, size_t n, size_t size,
				int (*compare)(const void *a, const void *b)) = bsearch;
#else
#define search bsearch
#endif

static NOINLINE void stepped(unsigned long n)
{
	int numbers[3] = { 3, 1, 2 };

	n += spin(n);
	n += aligned_leaf(n);
	(void)search(&numbers[1], numbers, 3, sizeof(int), compare);
	OPAQUE(n);
}

static NOINLINE void steps(void)
{
	steps_begin();
	stepped(1);
	steps_end();
}

/* binding_steps steps through the first call of a function, which the dynamic loader binds. */
static NOINLINE void binding_steps(void)
{
	int n = 1;

	steps_begin();
	OPAQUE(n);
	n = abs(n);
	OPAQUE(n);
	steps_end();
}

#endif /* STACKS_STEPS_H */
