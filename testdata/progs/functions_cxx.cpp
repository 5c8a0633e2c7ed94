// SPDX-License-Identifier: Apache-2.0
/*
 * functions_cxx ROUNDS: functions of C++ that throw through each other, and one of the
 * C library.
 *
 * Output: each call in the form of functions.c; functions that an exception leaves have no
 * line for their end.
 */
#include "prog.h"

#define TOLD __attribute__((noinline, noclone, used))

static int tid;

namespace told
{
struct problem {
	int number;
};

TOLD int inner(int n)
{
	out("%d enter told::inner d:%d\n", tid, n);
	if (n % 2)
		throw problem{ n };
	out("%d leave told::inner d:%d\n", tid, n + 1);
	return n + 1;
}

TOLD int outer(int n)
{
	out("%d enter told::outer d:%d\n", tid, n);
	int sum = inner(n) + 1;
	out("%d leave told::outer d:%d\n", tid, sum);
	return sum;
}

TOLD long twice(long n)
{
	out("%d enter told::twice(long) x:%ld\n", tid, n);
	out("%d leave told::twice(long) x:%ld\n", tid, 2 * n);
	return 2 * n;
}

TOLD int twice(int n)
{
	asm volatile("" : "+r"(n));
	return 2 * n;
}

TOLD int jumps(int (*f)(int), int n)
{
	return f(n);
}
} // namespace told

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
			told::outer(n);
		} catch (const told::problem &p) {
			if (p.number != n)
				die("another exception");
		}
		told::twice(1000L * n);
		told::jumps(told::twice, n);
		out("%d enter labs x:%ld\n", tid, -5L - n);
		out("%d leave labs x:%ld\n", tid, labs(-5L - n));
	}
	out_flush();
	return 0;
}
