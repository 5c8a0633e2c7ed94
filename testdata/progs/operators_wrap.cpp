// SPDX-License-Identifier: Apache-2.0
/*
 * operators_wrap: a library to preload (-shared -fPIC) that wraps glibc's allocator, like
 * wrap.c, with operators that bypass its malloc and free: they call glibc's.
 */
#include <new>
#include <stddef.h>

extern "C" void *__libc_malloc(size_t n);
extern "C" void __libc_free(void *p);

/* As if found with dlsym: the compiler must not know the functions. */
static void *(*volatile next_malloc)(size_t) = __libc_malloc;
static void (*volatile next_free)(void *) = __libc_free;
static volatile size_t deleted;

extern "C" void *malloc(size_t n)
{
	return next_malloc(n);
}

extern "C" void free(void *p)
{
	next_free(p);
}

void *operator new(size_t n)
{
	for (;;) {
		void *p = next_malloc(n ? n : 1);

		if (p)
			return p;
		std::new_handler handler = std::get_new_handler();
		if (!handler)
			throw std::bad_alloc();
		handler();
	}
}

/* Not with a jump. */
void operator delete(void *p) noexcept
{
	next_free(p);
	deleted = deleted + 1;
}
