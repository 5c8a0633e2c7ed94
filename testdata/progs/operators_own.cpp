// SPDX-License-Identifier: Apache-2.0
/*
 * operators_own ROUNDS: a program that defines operators itself, logged like those of
 * operators.
 *
 * new calls malloc and delete ends in a jump to free; new without exceptions ends in a jump to
 * malloc. new[] hands out pieces of a chunk and calls malloc only for every fourth; the pieces
 * are returned to it, so that delete[] frees nothing. The operators that it does not define are
 * libstdc++'s, which use those that it defines.
 *
 * After the gate, ROUNDS times: all of these, with calls of malloc and free between them, from
 * the same frame and from nested ones.
 */
#include "oplog.h"
#include <new>

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wsized-deallocation" /* libstdc++ has those */
#endif

enum { PIECE = 96, PIECES = 4 };

static char *chunk;
static int given = PIECES;

NOINLINE void *operator new(size_t n)
{
	void *p = malloc(n);

	if (!p)
		throw std::bad_alloc();
	return p;
}

NOINLINE void *operator new(size_t n, const std::nothrow_t &) noexcept
{
	return malloc(n);
}

NOINLINE void operator delete(void *p) noexcept
{
	free(p);
}

NOINLINE void *operator new[](size_t n)
{
	if (n > PIECE)
		throw std::bad_alloc();
	if (given == PIECES) {
		given = 0;
		chunk = (char *)malloc(PIECES * PIECE);
		log_new(NEW_ARRAY, chunk, PIECES * PIECE);
	}
	return chunk + PIECE * given++;
}

NOINLINE void operator delete[](void *) noexcept {}

static NOINLINE void plain(size_t n)
{
	void *p = log_new("malloc", malloc(n), n);

	log_delete("free", (uintptr_t)p);
	free(p);
}

static NOINLINE void pieces()
{
	for (int i = 0; i < PIECES; i++) {
		void *p = ::operator new[](PIECE);
		void *q = malloc(16);

		log_new("malloc", q, 16);
		plain(32);
		/* libstdc++'s operator ignores the size, and so does the program's. */
		::operator delete[](p, (size_t)PIECE);
		log_delete("free", (uintptr_t)q);
		free(q);
	}
	free(chunk);
	log_delete("free", (uintptr_t)chunk);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: operators_own ROUNDS");
	unsigned long rounds = number(argv[1]);
	gate();
	for (unsigned long i = 0; i < rounds; i++) {
		void *p = log_new(NEW, ::operator new(24), 24);
		plain(40);
		log_delete(DELETE_SIZED, (uintptr_t)p);
		::operator delete(p, (size_t)24);

		p = log_new(NEW_NOTHROW, ::operator new(56, std::nothrow), 56);
		plain(40);
		log_delete(DELETE_NOTHROW, (uintptr_t)p);
		::operator delete(p, std::nothrow);
		plain(40);
		pieces();
	}
	log_report();
	_exit(0);
}
