// SPDX-License-Identifier: Apache-2.0
/*
 * left HOW N: calls of the allocator that never return, logged.
 *
 * A realloc of something that is not a block detects that and aborts, from inside, and the
 * handler of SIGABRT jumps away. Such calls are logged as calls without an effect. After the
 * gate
 *
 *	jump	N times such a realloc and then, from the same place of the stack, a malloc, a
 *		realloc of its block, and a free
 *	nest	one such realloc, whose handler makes a malloc, a free and the next realloc, N
 *		deep, and the last handler leaves them all
 *	thread	N threads, one after the other, that make a malloc and a free and end in the
 *		handler of such a realloc
 *	hidden	N times posix_memalign that stores its block where it cannot be read any more
 *		when it returns (x86 only)
 *
 * and finally a malloc from a frame above all that, so that a tracer that looks at the stack
 * can know that those calls are gone.
 */
#include "prog.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ucontext.h>

static struct ledger l;
static unsigned long wanted, level;
static sigjmp_buf away;
static char no_block[64] __attribute__((aligned(16)));

static void catch_signal(int sig, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | SA_NODEFER;
	if (sigaction(sig, &action, NULL))
		die("no handler");
}

/* abort_inside makes a realloc that does not return. It is logged before. */
static NOINLINE void abort_inside(void)
{
	note(&l, FN_REALLOC, OP_NONE, (uintptr_t)no_block + 24, 0, 1000);
	free(realloc(no_block + 24, 1000));
	die("realloc has taken what is no block");
}

static void jump(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info, (void)context;
	siglongjmp(away, 1);
}

/* same_slot calls one of two functions from one place of the stack. */
static NOINLINE void *same_slot(int good, void *p, size_t n)
{
	/* Volatile, so that it is a single call. */
	void *(*volatile call)(void *, size_t) = realloc;

	return call(good ? p : no_block + 24, n);
}

static NOINLINE void jumps(void)
{
	for (volatile unsigned long i = 0; i < wanted; i = i + 1) {
		void *p, *q;

		if (!sigsetjmp(away, 1)) {
			note(&l, FN_REALLOC, OP_NONE, (uintptr_t)no_block + 24, 0, 1000);
			same_slot(0, NULL, 1000);
			die("realloc has taken what is no block");
		}
		p = note_moved(&l, FN_REALLOC, 0, same_slot(1, NULL, i + 10), i + 10, 0);
		q = note_moved(&l, FN_REALLOC, (uintptr_t)p, same_slot(1, p, i + 5000), i + 5000,
			       0);
		do_free(&l, q);
	}
}

static void deeper(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info, (void)context;
	do_free(&l, do_malloc(&l, ++level));
	if (level < wanted)
		abort_inside();
	siglongjmp(away, 1);
}

static NOINLINE void nest(void)
{
	if (!sigsetjmp(away, 1))
		abort_inside();
}

static void end_thread(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info, (void)context;
	syscall(SYS_exit, 0);
}

static void *thread(void *arg)
{
	l.tid = thread_id();
	do_free(&l, do_malloc(&l, 123));
	abort_inside();
	return arg;
}

static NOINLINE void threads(void)
{
	pid_t first = l.tid;

	for (unsigned long i = 0; i < wanted; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, thread, NULL))
			die("no thread");
		pthread_join(t, NULL);
	}
	l.tid = first;
}

#if defined(__x86_64__) || defined(__i386__)

enum { TRAP_FLAG = 0x100 };

static void **out_page;

/* stepped runs after each instruction until the block is stored, and hides the block. */
static void stepped(int sig, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig, (void)info;
	if (!*out_page)
		return;
	if (mprotect(out_page, 4096, PROT_NONE))
		die("not hidden");
	registers[REG_EFL] &= ~TRAP_FLAG;
}

/* step_from_here sets the processor's trap flag, below the red zone. */
static ALWAYS_INLINE void step_from_here(void)
{
#ifdef __x86_64__
	__asm__ volatile(
		"sub $128, %%rsp; pushf; orl $0x100, (%%rsp); popf; lea 128(%%rsp), %%rsp" ::
			: "memory", "cc");
#else
	__asm__ volatile("pushf; orl $0x100, (%%esp); popf" ::: "memory", "cc");
#endif
}

static NOINLINE void hidden(void)
{
	out_page = (void **)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
	if (out_page == MAP_FAILED)
		die("no memory");
	catch_signal(SIGTRAP, stepped);
	for (unsigned long i = 0; i < wanted; i++) {
		int failed;

		*out_page = NULL;
		step_from_here();
		failed = posix_memalign(out_page, 64, 100 + i);
		if (mprotect(out_page, 4096, PROT_READ | PROT_WRITE))
			die("hidden for good");
		note(&l, FN_POSIX_MEMALIGN, failed ? OP_NONE : OP_ALLOC, 0, (uintptr_t)*out_page,
		     100 + i);
		do_free(&l, *out_page);
	}
}

#else

static void hidden(void)
{
	die("x86 only");
}

#endif

int main(int argc, char **argv)
{
	int null;

	if (argc < 3)
		die("usage: left jump|nest|thread|hidden N");
	wanted = number(argv[2]);
	l.tid = thread_id();
	ledger_open(&l, wanted * 4 + 10);
	null = open("/dev/null", O_WRONLY); /* for the C library's messages about the blocks */
	gate();
	if (dup2(null, STDERR_FILENO) < 0)
		die("not quiet");
	catch_signal(SIGABRT, argv[1][0] == 'j' ? jump : argv[1][0] == 'n' ? deeper : end_thread);
	switch (argv[1][0]) {
	case 'j':
		jumps();
		break;
	case 'n':
		nest();
		break;
	case 't':
		threads();
		break;
	default:
		hidden();
	}
	do_free(&l, do_malloc(&l, 77));
	report(&l, 1, "");
	_exit(0);
}
