// SPDX-License-Identifier: Apache-2.0
/*
 * shim: a library for LD_PRELOAD that logs every call of the allocator by a program and its
 * libraries and passes it on to the next allocator, usually the C library's. The log
 * (shim_log.h) is what a trace is compared with. Built with
 *
 *	-shared -fPIC -static-libgcc
 *
 * With SHIM_LOG=DIR in the environment each process logs to a file of its own in DIR; without
 * it, nothing is logged. With SHIM_DEPTH=N an entry has up to N return addresses of its
 * caller.
 *
 * The log contains each call by name, including those of libc itself (strdup, fopen, getline,
 * pthread_create …) and of the dynamic loader once it uses libc's allocator. What it does not
 * contain, and what a tracer of the C library sees of that:
 *
 *	calls before the C library has its environment	counted in the file; seen
 *	calls while the shim looks up the functions	served here; not seen
 *	realloc called by libc's own reallocarray	passed on; part of that call
 *	calls by a child of vfork before it execs	counted; of another process
 *	frees of the cache of a thread that ends	direct calls within libc, which
 *							the tracer takes for libc's own
 *	calls of __libc_malloc and similar, and of	unknown here; seen
 *	libraries loaded with RTLD_DEEPBIND or dlmopen
 *
 * A child of fork has a log of its own from its first call on. A signal handler that allocates
 * must not interrupt the allocator. Each thread leaves a mapping of 64 KiB when it ends.
 */
#include "shim_log.h"
#include "shim_next.h"

#define EXPORT __attribute__((visibility("default")))

static inline uint64_t product(size_t n, size_t each)
{
	size_t size;

	return __builtin_mul_overflow(n, each, &size) ? UINT64_MAX : size;
}

/* made passes on a call that makes a block, and logs it. */
#define made(function, old, size, call)                           \
	({                                                        \
		uint64_t *entry = log_begin(function, old, size); \
		void *block = call;                               \
		log_end(entry, block);                            \
		block;                                            \
	})

EXPORT void *malloc(size_t n)
{
	if (!next_ready())
		return early_malloc(n);
	return made(LOG_MALLOC, NULL, n, next.malloc(n));
}

EXPORT void *calloc(size_t n, size_t each)
{
	if (!next_ready())
		return early_malloc(n * each); /* of memory that was never used */
	return made(LOG_CALLOC, NULL, product(n, each), next.calloc(n, each));
}

EXPORT void free(void *p)
{
	uint64_t *entry;

	if (is_early(p) || !next_ready())
		return;
	entry = log_begin(LOG_FREE, p, 0);
	next.free(p);
	log_end(entry, NULL);
}

static __attribute__((noinline)) void *logged_realloc(void *p, size_t n)
{
	return made(LOG_REALLOC, p, n, next.realloc(p, n));
}

EXPORT void *realloc(void *p, size_t n)
{
	/* With a jump, so that to an observer the allocator has called itself. */
	if (log_own.inside)
		return next.realloc(p, n);
	if (is_early(p) || !next_ready())
		return early_realloc(p, n);
	return logged_realloc(p, n);
}

EXPORT void *reallocarray(void *p, size_t n, size_t each)
{
	uint64_t *entry;
	void *block;

	if (is_early(p) || !next_ready())
		return early_realloc(p, n * each);
	entry = log_begin(LOG_REALLOCARRAY, p, product(n, each));
	log_own.inside = 1;
	block = next.reallocarray(p, n, each);
	log_own.inside = 0;
	log_end(entry, block);
	return block;
}

EXPORT int posix_memalign(void **to, size_t alignment, size_t n)
{
	uint64_t *entry;
	int failed;

	if (!next_ready())
		return ENOMEM;
	entry = log_begin(LOG_POSIX_MEMALIGN, NULL, n);
	failed = next.posix_memalign(to, alignment, n);
	log_end(entry, failed ? NULL : *to);
	return failed;
}

EXPORT void *aligned_alloc(size_t alignment, size_t n)
{
	if (!next_ready())
		return NULL;
	return made(LOG_ALIGNED_ALLOC, NULL, n, next.aligned_alloc(alignment, n));
}

EXPORT void *memalign(size_t alignment, size_t n)
{
	if (!next_ready())
		return NULL;
	return made(LOG_MEMALIGN, NULL, n, next.memalign(alignment, n));
}

EXPORT void *valloc(size_t n)
{
	if (!next_ready())
		return NULL;
	return made(LOG_VALLOC, NULL, n, next.valloc(n));
}

EXPORT void *pvalloc(size_t n)
{
	if (!next_ready())
		return NULL;
	return made(LOG_PVALLOC, NULL, n, next.pvalloc(n));
}

/* A program must not allocate before it has threads. */
static __attribute__((constructor(101))) void shim_start(void)
{
	if (next_ready())
		(void)log_of_process();
}
