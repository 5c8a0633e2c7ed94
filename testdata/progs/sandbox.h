/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes that kill: a program forbids itself system calls that it never makes:
 *
 *	probes	335 and 336, which on x86-64 the kernel's own code for probes makes
 *	others	all but read, write, brk and exit
 *	strict	the same with the kernel's strict mode, without a filter: all but
 *		read, write and exit
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include "prog.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
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

static ALWAYS_INLINE void filter(struct sock_filter *filter, size_t n)
{
	struct sock_fprog program = { (unsigned short)n, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("no seccomp");
}

/* forbid enters one of these sandboxes, before the gate. */
static ALWAYS_INLINE void forbid(const char *how)
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

/* sandbox_gate is the gate with only the allowed calls. */
static ALWAYS_INLINE void sandbox_gate(void)
{
	write_all(GATE_READY, "ready\n", 6);
	if (!read_byte(GATE_GO))
		syscall(SYS_exit, 98);
}

#endif
