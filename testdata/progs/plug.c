// SPDX-License-Identifier: Apache-2.0
/*
 * plug: a library for dl and mmapexec (-shared -fPIC).
 *
 * plug_leak(n) makes malloc(n) and returns the block; it is never freed.
 */
#include <stdlib.h>

void *plug_leak(size_t n);

void *plug_leak(size_t n)
{
	void *p = malloc(n);

	__asm__ volatile("" : : "r"(p) : "memory"); /* no tail call: plug_leak stays on the stack */
	return p;
}
