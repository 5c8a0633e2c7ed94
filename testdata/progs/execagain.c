// SPDX-License-Identifier: Apache-2.0
/*
 * execagain N: executes itself N times in a row, with malloc(100) in between; with 0
 * endlessly. Its gate is before the first exec.
 */
#include "prog.h"

int main(int argc, char **argv)
{
	char left[24], *next[] = { argv[0], left, NULL };
	unsigned long n;
	static void *volatile block;

	if (argc < 2)
		die("usage: execagain N");
	n = number(argv[1]);
	if (strcmp(argv[0], "again"))
		gate();
	next[0] = "again";
	block = malloc(100);
	if (n == 1)
		_exit(block ? 0 : 1);
	snprintf(left, sizeof(left), "%lu", n ? n - 1 : 0);
	execv("/proc/self/exe", next);
	die("cannot execute itself");
}
