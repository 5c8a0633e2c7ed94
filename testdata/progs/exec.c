// SPDX-License-Identifier: Apache-2.0
/*
 * exec N PROGRAM ARGS...: executes another program.
 *
 * After the gate: N times malloc(100), whose blocks are kept, logged; then it
 * prints its report and executes PROGRAM, which finds the gate's pipes open. So
 * the output of one of our programs follows as a second report.
 */
#include "prog.h"

int main(int argc, char **argv)
{
	static struct ledger l;
	unsigned long n, i;

	if (argc < 3)
		die("usage: exec N PROGRAM ARGS...");
	n = number(argv[1]);
	l.tid = thread_id();
	ledger_open(&l, n);
	gate();
	for (i = 0; i < n; i++)
		do_malloc(&l, 100);
	report(&l, 1, "");
	execv(argv[2], argv + 2);
	die("cannot execute %s", argv[2]);
}
