// SPDX-License-Identifier: Apache-2.0
/*
 * wrap: a library to preload (-shared -fPIC) that wraps glibc's allocator, as interposers do, in
 * each of their ways:
 *
 *	malloc, free	end in a jump to glibc's
 *	calloc		calls glibc's malloc, and free for an additional block
 *	realloc		calls glibc's malloc and free if the block grows, else glibc's realloc
 *
 * It leaves the other functions to glibc. It makes no calls for itself.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t n);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

/* As if found with dlsym: the compiler must not know the functions. */
static void *(*volatile next_malloc)(size_t) = __libc_malloc;
static void *(*volatile next_realloc)(void *, size_t) = __libc_realloc;
static void (*volatile next_free)(void *) = __libc_free;

void *malloc(size_t n)
{
	return next_malloc(n);
}

void free(void *p)
{
	next_free(p);
}

void *calloc(size_t n, size_t each)
{
	size_t size;
	void *p, *besides;

	if (__builtin_mul_overflow(n, each, &size))
		return NULL;
	besides = next_malloc(5000);
	p = next_malloc(size);
	if (p)
		memset(p, 0, size);
	next_free(besides);
	return p;
}

void *realloc(void *p, size_t n)
{
	void *moved;

	if (!p || n <= malloc_usable_size(p))
		return next_realloc(p, n);
	moved = next_malloc(n);
	if (moved) {
		memcpy(moved, p, malloc_usable_size(p));
		next_free(p);
	}
	return moved;
}
