// SPDX-License-Identifier: Apache-2.0
/*
 * aligned N: blocks of small and large alignments, logged.
 *
 * After the gate, N times for each alignment from 1 to 4096: memalign, aligned_alloc and
 * posix_memalign (from the size of a pointer on) of 100 bytes, and a free of each. For an
 * alignment that malloc guarantees anyway, some C libraries call or jump to malloc.
 */
#include "prog.h"
#include <malloc.h>

int main(int argc, char **argv)
{
	static struct ledger l;
	unsigned long n, i;
	size_t alignment;

	if (argc < 2)
		die("usage: aligned N");
	n = number(argv[1]);
	l.tid = thread_id();
	ledger_open(&l, 13 * 6 * n);
	gate();
	for (i = 0; i < n; i++)
		for (alignment = 1; alignment <= 4096; alignment *= 2) {
			void *p = memalign(alignment, 100);

			do_free(&l, note_new(&l, FN_MEMALIGN, p, 100));
			p = aligned_alloc(alignment, 100);
			do_free(&l, note_new(&l, FN_ALIGNED_ALLOC, p, 100));
			if (alignment < sizeof(p) || posix_memalign(&p, alignment, 100))
				continue;
			do_free(&l, note_new(&l, FN_POSIX_MEMALIGN, p, 100));
		}
	report(&l, 1, "");
	_exit(0);
}
