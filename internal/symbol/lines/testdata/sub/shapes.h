/* Functions that are inlined, from a header in another folder. */
#pragma once

#include <stdlib.h>

extern int sink;

static inline __attribute__((always_inline)) int twice(int x) {
	sink += rand();
	return 2 * x;
}

static inline __attribute__((always_inline)) int four(int x) {
	int y = twice(x);
	sink += rand();
	return y + twice(x);
}
