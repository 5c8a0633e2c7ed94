// SPDX-License-Identifier: Apache-2.0
/*
 * paced ROUNDS PAIRS: after the gate, ROUNDS times, PAIRS times malloc(32) and free of the
 * block, and a system call that fails: lseek on no descriptor, to the number of the round,
 * from 0. The JSON has the counts.
 */
#include "prog.h"

int main(int argc, char **argv)
{
	static struct ledger l;
	unsigned long rounds, pairs, i, j;

	if (argc != 3)
		die("usage: paced ROUNDS PAIRS");
	rounds = number(argv[1]);
	pairs = number(argv[2]);
	l.tid = thread_id();
	gate();
	for (i = 0; i < rounds; i++) {
		for (j = 0; j < pairs; j++)
			do_free(&l, do_malloc(&l, 32));
		syscall(SYS_lseek, -1, i, 0);
	}
	report(&l, 1, "");
	return 0;
}
