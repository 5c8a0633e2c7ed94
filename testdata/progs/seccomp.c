// SPDX-License-Identifier: Apache-2.0
/*
 * seccomp N: N calls under a filter that kills.
 *
 * Before the gate it installs a seccomp filter that kills the process at
 * system call 335, which it never makes; on x86-64 the kernel's own code for
 * return probes does. After the gate: N times malloc(100), whose blocks are
 * kept, logged.
 */
#include "prog.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#define FORBIDDEN 335

static void forbid(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number of the call */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FORBIDDEN, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("no seccomp");
}

int main(int argc, char **argv)
{
	static struct ledger l;
	unsigned long n, i;

	if (argc < 2)
		die("usage: seccomp N");
	n = number(argv[1]);
	l.tid = thread_id();
	ledger_open(&l, n);
	forbid();
	gate();
	for (i = 0; i < n; i++)
		do_malloc(&l, 100);
	report(&l, 1, "");
	_exit(0);
}
