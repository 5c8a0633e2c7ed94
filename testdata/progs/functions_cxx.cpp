// SPDX-License-Identifier: Apache-2.0
/*
 * functions_cxx ROUNDS: functions of C++ that throw through each other, and one of the
 * C library.
 *
 * Output: each call in the form of functions.c; functions that an exception leaves have no
 * line for their end.
 */
#include "prog.h"

#define TRACED __attribute__((noinline, noclone, used))

static int tid;

namespace traced
{
struct problem {
	int number;
};

TRACED int inner(int n)
{
	out("%d enter traced::inner d:%d\n", tid, n);
	if (n % 2)
		throw problem{ n };
	out("%d leave traced::inner d:%d\n", tid, n + 1);
	return n + 1;
}

TRACED int outer(int n)
{
	out("%d enter traced::outer d:%d\n", tid, n);
	int sum = inner(n) + 1;
	out("%d leave traced::outer d:%d\n", tid, sum);
	return sum;
}

TRACED long twice(long n)
{
	out("%d enter traced::twice(long) x:%ld\n", tid, n);
	out("%d leave traced::twice(long) x:%ld\n", tid, 2 * n);
	return 2 * n;
}

TRACED int twice(int n)
{
	asm volatile("" : "+r"(n));
	return 2 * n;
}

TRACED int jumps(int (*f)(int), int n)
{
	return f(n);
}
} // namespace traced

int main(int argc, char **argv)
{
	if (argc != 2)
		die("usage: functions_cxx ROUNDS");
	unsigned long rounds = number(argv[1]);
	tid = (int)thread_id();
	gate();
	for (unsigned long i = 0; i < rounds; i++) {
		int n = (int)i;

		try {
			traced::outer(n);
		} catch (const traced::problem &p) {
			if (p.number != n)
				die("another exception");
		}
		traced::twice(1000L * n);
		traced::jumps(traced::twice, n);
		out("%d enter labs x:%ld\n", tid, -5L - n);
		out("%d leave labs x:%ld\n", tid, labs(-5L - n));
	}
	out_flush();
	return 0;
}
