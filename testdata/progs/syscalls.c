// SPDX-License-Identifier: Apache-2.0
/*
 * syscalls FIRST END: makes every system call from FIRST up to END, and none takes place: a
 * filter refuses all with ENOSYS except the one that ends the process. It serves to find out
 * what a tool takes each number for.
 */
#include "prog.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };
	unsigned long n, end;

	if (argc != 3)
		die("usage: syscalls FIRST END");
	n = number(argv[1]);
	end = number(argv[2]);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		die("no filter");
	for (; n < end; n++)
		if (n != SYS_exit_group)
			syscall((long)n, -1L, -1L, -1L, -1L, -1L, -1L);
	return 0;
}
