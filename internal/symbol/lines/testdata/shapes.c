/* Functions of kinds that debugging information describes in different ways. */
#include "sub/shapes.h"

#include <stdio.h>
#include <string.h>

int sink;
static const long long lowest = -0x7fffffffffffffffLL - 1;

static __attribute__((noinline)) int constant(int a, int b) {
	if (a > 100)
		abort();
	return four(a) * b + rand();
}

__attribute__((cold, noinline)) static void unlikely(const char *what) {
	fprintf(stderr, "%s\n", what);
	exit(1);
}

int split(int n) {
	if (__builtin_expect(n > 1000, 0)) {
		unlikely("large");
	}
	for (int i = 0; i < n; i++) {
		int loop = four(i);
		if (loop & 1)
			sink += twice(loop);
	}
	return sink;
}

static int recursive(int n) {
	return n <= 1 ? 1 : n * recursive(n - 1) + twice(n);
}

#define MACRO(x) (four(x) + \
	twice(x))

int nested(int n) {
#ifndef __clang__
	int inner(int m) { return m + n + rand(); }
	n = inner(n);
#endif
	return n + MACRO(n);
}

__attribute__((section(".text.apart"))) int apart(int n) { return four(n) + constant(n, 3); }

static __attribute__((noinline)) char *copy(const char *text) { return strdup(text); }

int main(int argc, char **argv) {
	char *text = copy(argv[0]);
	int r = constant(argc, 3) + split(argc) + recursive(argc) + nested(argc) + apart(argc);
	free(text);
	return r == lowest;
}
