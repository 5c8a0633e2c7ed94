// SPDX-License-Identifier: Apache-2.0
/*
 * seccomp HOW N: N calls in a sandbox that kills.
 *
 * Before the gate it forbids itself system calls, see sandbox.h.
 *
 * After the gate: N times malloc(100), whose blocks are kept, logged.
 */
#include "sandbox.h"
#include <malloc.h>

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
	sandbox_gate();
	for (i = 0; i < n; i++)
		do_malloc(&l, 100);
	report_calls(&l);
	out("{\"pid\":%d,\"tids\":[%d],\"functions\":{\"malloc\":{\"calls\":%lu,\"bytes\":%lu}},"
	    "\"ops\":{\"none\":0,\"alloc\":%lu,\"free\":0,\"move\":0}}\n",
	    (int)l.tid, (int)l.tid, n, n * 100, n);
	out_flush();
	syscall(SYS_exit, 0);
}
