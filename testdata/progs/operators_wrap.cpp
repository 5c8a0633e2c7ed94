// SPDX-License-Identifier: Apache-2.0
/*
 * operators_wrap: a library to be preloaded (-shared -fPIC) that stands before glibc's
 * allocator, as wrap.c, with operators that go past its malloc and free: they call
 * glibc's.
 */
#include <new>
#include <stddef.h>

extern "C" void *__libc_malloc(size_t n);
extern "C" void __libc_free(void *p);

/* As found by dlsym: the compiler must not know where they lead. */
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

/* Not by a jump. */
void operator delete(void *p) noexcept
{
	next_free(p);
	deleted = deleted + 1;
}
