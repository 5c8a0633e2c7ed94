/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal at every single instruction: the processor's trap flag is set by one
 * handler and cleared by the next ones' last. So prologues, epilogues, PLT
 * entries and the vDSO are interrupted at each place that they have. Only x86.
 */
#ifndef STACKS_STEPS_H
#define STACKS_STEPS_H

#if defined(__x86_64__) || defined(__i386__)

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

static NOINLINE void stepped(unsigned long n)
{
	int numbers[3] = { 3, 1, 2 };

	n += spin(n);
	n += aligned_leaf(n);
	(void)bsearch(&numbers[1], numbers, 3, sizeof(int), compare);
	OPAQUE(n);
}

static NOINLINE void steps(void)
{
	stepping = 1;
	raise(SIG_BEGIN);
	stepped(1);
	stepping = 0;
}

/* binding_steps goes through the first call of a function, which the dynamic loader binds. */
static NOINLINE void binding_steps(void)
{
	int n = 1;

	stepping = 1;
	raise(SIG_BEGIN);
	OPAQUE(n);
	n = abs(n);
	OPAQUE(n);
	stepping = 0;
}

#else
#define steps_install() ((void)0)
#define steps() ((void)0)
#define binding_steps() ((void)0)
#endif

#endif /* STACKS_STEPS_H */
