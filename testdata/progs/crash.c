// SPDX-License-Identifier: Apache-2.0
/*
 * crash HOW N: ends badly after N calls.
 *
 * After the gate: N times malloc(100), whose blocks are kept, logged; then it
 * prints its report and ends according to HOW: segv (writes to address 8), abort,
 * kill (SIGKILL to itself), or exit (with code 7).
 */
#include "prog.h"
#include <signal.h>

int main(int argc, char **argv)
{
	static struct ledger l;
	int *volatile wild = (int *)(uintptr_t)8;
	unsigned long n, i;

	if (argc < 3)
		die("usage: crash segv|abort|kill|exit N");
	n = number(argv[2]);
	l.tid = thread_id();
	ledger_open(&l, n);
	gate();
	for (i = 0; i < n; i++)
		do_malloc(&l, 100);
	report(&l, 1, "");
	if (strcmp(argv[1], "segv") == 0)
		*wild = 1;
	else if (strcmp(argv[1], "abort") == 0)
		abort();
	else if (strcmp(argv[1], "kill") == 0)
		kill(getpid(), SIGKILL);
	_exit(7);
}
