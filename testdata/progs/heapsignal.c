// SPDX-License-Identifier: Apache-2.0
/*
 * heapsignal inside|leave: a signal while the allocator waits for memory; logged.
 *
 * A seccomp filter turns the mmap of one length into a signal, so that its handler runs
 * inside of malloc, between the call of mmap and its return:
 *
 *	inside	the handler allocates a block, which needs an mmap of its own, and then gives
 *		the interrupted malloc what it requested
 *	leave	the handler leaves malloc with longjmp
 *
 * Then one more block is allocated. All of them have mappings of their own.
 */
#include "prog.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

#ifdef __i386__
#define MMAP SYS_mmap2 /* its last argument, the offset, is 0 here */
#else
#define MMAP SYS_mmap
#endif

#if defined(__x86_64__)
#define RESULT(u) ((u)->uc_mcontext.gregs[REG_RAX])
#elif defined(__i386__)
#define RESULT(u) ((u)->uc_mcontext.gregs[REG_EAX])
#elif defined(__aarch64__)
#define RESULT(u) ((u)->uc_mcontext.regs[0])
#endif

enum { TRAPPED = 0x300000, INNER = 0x500000, LAST = 0x700000 };

static struct ledger ledger;
static sigjmp_buf outside;
static int leave;

static void trap(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number of the call */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MMAP, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TRAPPED, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("no seccomp");
}

static void handle(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = (ucontext_t *)context;

	(void)number;
	(void)info;
	if (leave)
		siglongjmp(outside, 1);
	do_malloc(&ledger, INNER);
	RESULT(u) = syscall(MMAP, NULL, TRAPPED + 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int argc, char **argv)
{
	struct sigaction action;
	volatile int i;

	if (argc < 2)
		die("usage: heapsignal inside|leave");
	leave = strcmp(argv[1], "leave") == 0;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handle;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGSYS, &action, NULL);
	ledger.tid = thread_id();
	ledger_open(&ledger, 10);
	free(malloc(1)); /* makes the thread's cache */
	trap();
	gate();
	for (i = 0; i < 2; i++)
		if (!sigsetjmp(outside, 1) && !do_malloc(&ledger, i ? LAST : TRAPPED - 4000))
			die("no memory");
	report(&ledger, 1, "");
	_exit(0);
}
