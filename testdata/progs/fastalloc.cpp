// SPDX-License-Identifier: Apache-2.0
/*
 * fastalloc: an allocator to preload, whose operator new usually does not reach its
 * malloc, as in jemalloc and others.
 *
 * Blocks are never reused. Small ones are made in operator new itself, middle ones in
 * malloc, to which it jumps, large ones in a function that both end in a jump to. If there
 * is no room, the new_handler is called.
 */
#include <errno.h>
#include <new>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define HIDDEN __attribute__((visibility("hidden"), noinline))
#define LIKELY_INLINE inline __attribute__((always_inline))

enum { SMALL = 100, MIDDLE = 4096, HEAD = 64, AREA = 1 << 26 };

static __thread char *next, *limit;

/* map maps memory with room for the size before the block. */
static LIKELY_INLINE void *map(size_t n, size_t align)
{
	char *p;

	if (n > SIZE_MAX / 4)
		return nullptr;
	p = (char *)mmap(nullptr, n + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (p == MAP_FAILED)
		return nullptr;
	p += align;
	((size_t *)p)[-1] = n;
	return p;
}

static LIKELY_INLINE void *piece(size_t n)
{
	size_t all = (n + HEAD + 63) & ~(size_t)63;
	char *p = next;

	if (__builtin_expect((size_t)(limit - p) < all, 0))
		return nullptr;
	next = p + all;
	p += HEAD;
	((size_t *)p)[-1] = n;
	return p;
}

extern "C" HIDDEN void *fast_large(size_t n)
{
	void *p;

	if (n > MIDDLE)
		return map(n, 4096);
	next = (char *)mmap(nullptr, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	if (next == MAP_FAILED) {
		next = limit = nullptr;
		return nullptr;
	}
	limit = next + AREA;
	p = piece(n);
	return p;
}

extern "C" void *malloc(size_t n)
{
	if (n <= MIDDLE) {
		void *p = piece(n);

		if (p)
			return p;
	}
	return fast_large(n);
}

extern "C" void free(void *p)
{
	asm volatile("" : : "r"(p) : "memory");
}

extern "C" void *calloc(size_t n, size_t each)
{
	if (each && n > SIZE_MAX / each)
		return nullptr;
	return malloc(n * each);
}

extern "C" void *realloc(void *old, size_t n)
{
	void *p = malloc(n);

	if (p && old) {
		size_t had = ((size_t *)old)[-1];

		memcpy(p, old, had < n ? had : n);
	}
	return p;
}

extern "C" void *aligned_alloc(size_t align, size_t n)
{
	return map(n, align < 4096 ? 4096 : align);
}

/* fast_handled is where operator new ends up if there is no room. */
extern "C" HIDDEN void *fast_handled(size_t n)
{
	void *p;

	while (!(p = fast_large(n))) {
		std::new_handler handler = std::get_new_handler();

		if (!handler)
			throw std::bad_alloc();
		handler();
	}
	return p;
}

void *operator new(size_t n)
{
	if (n <= SMALL) {
		void *p = piece(n);

		if (p)
			return p;
	} else if (n <= MIDDLE) {
		return malloc(n);
	}
	return fast_handled(n);
}

void *operator new[](size_t n)
{
	return ::operator new(n);
}

void operator delete(void *p) noexcept
{
	asm volatile("" : : "r"(p) : "memory");
}

void operator delete(void *p, size_t) noexcept
{
	::operator delete(p);
}
