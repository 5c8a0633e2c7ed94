// SPDX-License-Identifier: Apache-2.0
/*
 * plugs: a library for stacks_late (-shared -fPIC). Its frames are ROOM bytes larger than
 * those with any other ROOM above 128, while the code has the same length at the same
 * addresses: the unwind tables of one are wrong for another.
 *
 * plug_make(n) calls malloc(n) below a few such frames.
 */
#include <stdlib.h>

#ifndef ROOM
#define ROOM 200
#endif

#define USE(memory) __asm__ volatile("" : : "r"(memory) : "memory")

void *plug_make(size_t n);

static __attribute__((noinline)) void *inner(size_t n)
{
	char room[ROOM];
	void *p;

	USE(room);
	p = malloc(n);
	USE(room);
	return p;
}

static __attribute__((noinline)) void *outer(size_t n)
{
	char room[2 * ROOM];
	void *p;

	USE(room);
	p = inner(n);
	USE(room);
	return p;
}

void *plug_make(size_t n)
{
	void *p = outer(n);

	USE(p);
	return p;
}
