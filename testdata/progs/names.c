// SPDX-License-Identifier: Apache-2.0
/*
 * names N: after the gate, a thread gives itself a new name N times, each of which makes the
 * kernel write a record for tracers that watch names.
 */
#include "prog.h"
#include <sys/prctl.h>

int main(int argc, char **argv)
{
	char name[16];
	unsigned long n, i;

	if (argc < 2)
		die("usage: names N");
	n = number(argv[1]);
	gate();
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "name %lu", i);
		if (prctl(PR_SET_NAME, name, 0, 0, 0))
			die("no name");
	}
	_exit(0);
}
