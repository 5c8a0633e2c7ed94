// SPDX-License-Identifier: Apache-2.0
/*
 * phases N ROUNDS: N phases, each after a gate. In phase i, from 0, it makes ROUNDS times
 *
 *	p = malloc(1000 + i)
 *	free(p)
 *
 * and keeps the last block. All calls are logged. At the end it waits once more.
 */
#include "prog.h"

int main(int argc, char **argv)
{
	static struct ledger l;
	unsigned long phases, rounds, i, k;

	if (argc != 3)
		die("usage: phases N ROUNDS");
	phases = number(argv[1]);
	rounds = number(argv[2]);
	l.tid = thread_id();
	ledger_open(&l, phases * rounds * 2);
	for (i = 0; i < phases; i++) {
		gate();
		for (k = 0; k < rounds; k++) {
			void *p = do_malloc(&l, 1000 + i);

			if (k + 1 < rounds)
				do_free(&l, p);
		}
	}
	gate();
	report(&l, 1, "");
	_exit(0);
}
