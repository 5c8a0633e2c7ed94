// SPDX-License-Identifier: Apache-2.0
/*
 * seccomp HOW N: N calls in a sandbox that kills.
 *
 * Before the gate it forbids itself system calls that it never makes:
 *
 *	probes	335 and 336, which on x86-64 the kernel's own code for probes makes
 *	others	all but the few that it makes
 *	strict	the same by the kernel's strict mode, without a filter: all but
 *		read, write and exit
 *
 * After the gate: N times malloc(100), whose blocks are kept, logged.
 */
#include "prog.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/prctl.h>

#define LOAD_NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define UNLESS(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1)

static struct sock_filter probes[] = {
	LOAD_NUMBER, UNLESS(335), KILL, UNLESS(336), KILL, ALLOW,
};

static struct sock_filter others[] = {
	LOAD_NUMBER, UNLESS(SYS_read),
	ALLOW,	     UNLESS(SYS_write),
	ALLOW,	     UNLESS(SYS_brk),
	ALLOW,	     UNLESS(SYS_exit),
	ALLOW,	     KILL,
};

static void filter(struct sock_filter *filter, size_t n)
{
	struct sock_fprog program = { (unsigned short)n, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("no seccomp");
}

static void forbid(const char *how)
{
	if (strcmp(how, "probes") == 0)
		filter(probes, sizeof(probes) / sizeof(probes[0]));
	else if (strcmp(how, "others") == 0)
		filter(others, sizeof(others) / sizeof(others[0]));
	else if (strcmp(how, "strict"))
		die("no way '%s'", how);
	else if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		die("no strict mode");
}

int main(int argc, char **argv)
{
	static struct ledger l;
	unsigned long n, i;

	if (argc < 3)
		die("usage: seccomp HOW N");
	n = number(argv[2]);
	l.tid = thread_id();
	ledger_open(&l, n);
	/* From here on the heap needs nothing from the system. */
	if (!mallopt(M_TOP_PAD, (int)(n * 200 + (1 << 20))))
		die("no padding");
	free(malloc(1));
	forbid(argv[1]);
	/* The gate, by the calls that are allowed. */
	write_all(GATE_READY, "ready\n", 6);
	if (!read_byte(GATE_GO))
		syscall(SYS_exit, 98);
	for (i = 0; i < n; i++)
		do_malloc(&l, 100);
	report_calls(&l);
	out("{\"pid\":%d,\"tids\":[%d],\"functions\":{\"malloc\":{\"calls\":%lu,\"bytes\":%lu}},"
	    "\"ops\":{\"none\":0,\"alloc\":%lu,\"free\":0,\"move\":0}}\n",
	    (int)l.tid, (int)l.tid, n, n * 100, n);
	out_flush();
	syscall(SYS_exit, 0);
}
