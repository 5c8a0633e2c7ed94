/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator of a program that logs its own stacks: each call of malloc, calloc, realloc,
 * reallocarray, free, posix_memalign, aligned_alloc or memalign logs the result of backtrace()
 * for its caller, in the log of stackfile.h. The program defines these functions, so that the
 * calls of libc, libstdc++ and the dynamic loader come here as well, and passes them on to the C
 * library.
 *
 * With -DSTACKLOG_DIRECT the program calls the C library's functions through inline functions
 * that log the stack; what libraries allocate is not logged.
 *
 * A signal handler that allocates must have interrupted neither the allocator nor the logger.
 */
#ifndef STACKLOG_H
#define STACKLOG_H

#include "stackfile.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <malloc.h>
#include <unwind.h>

enum { LOG_MOST_FRAMES = 1024 };

static __thread void *log_frames[LOG_MOST_FRAMES];

#ifdef __i386__

/*
 * Where call frame information ends, backtrace() of 32-bit x86 continues with what may be a frame
 * pointer. So this calls libgcc's unwinder, which does not.
 */
struct log_walk {
	void **frames;
	int n, most;
};

static _Unwind_Reason_Code log_frame(struct _Unwind_Context *context, void *to)
{
	struct log_walk *w = (struct log_walk *)to;
	void *ip = (void *)_Unwind_GetIP(context);

	if (!ip || w->n == w->most)
		return _URC_END_OF_STACK;
	w->frames[w->n++] = ip;
	return _URC_NO_REASON;
}

/* log_backtrace finds what backtrace() would find in its place. */
static NOINLINE int log_backtrace(void **frames, int most)
{
	struct log_walk w = { frames, 0, most };

	_Unwind_Backtrace(log_frame, &w);
	if (w.n > 0) /* without our own frame */
		memmove(frames, frames + 1, (size_t)--w.n * sizeof(*frames));
	return w.n;
}

#else
#define log_backtrace backtrace
#endif

/* C functions also use the log of C++ programs. */
#ifdef __cplusplus
#define LOG_C extern "C"
#else
#define LOG_C
#endif

/* The C library exports it under no other name. */
static int (*next_posix_memalign)(void **p, size_t align, size_t n);

/* stacklog_open starts the log, and makes backtrace load what it loads at its first call. */
static __attribute__((unused)) void stacklog_open(const char *path)
{
	*(void **)&next_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
	if (!next_posix_memalign)
		die("no posix_memalign");
	log_backtrace(log_frames, 4);
	log_open(path);
}

/* log_call adds an entry with the stack of its caller. */
static NOINLINE __attribute__((unused)) void log_call(enum op op, uintptr_t old, uintptr_t ptr,
						      size_t size)
{
	int n;

	if (!log_words)
		return;
	n = log_backtrace(log_frames, LOG_MOST_FRAMES);
	if (n < 2 || n == LOG_MOST_FRAMES)
		die("backtrace() finds %d frames", n);
	log_add(op, old, ptr, size, log_frames + 1, (size_t)n - 1); /* without our own frame */
}

/* log_new logs the block p, if there is one. */
static ALWAYS_INLINE void *log_new(void *p, size_t size)
{
	if (p)
		log_call(OP_ALLOC, 0, (uintptr_t)p, size);
	return p;
}

/* log_moved logs what realloc did: a block made, moved or freed. */
static ALWAYS_INLINE void *log_moved(uintptr_t old, void *p, size_t size)
{
	if (p)
		log_call(old ? OP_MOVE : OP_ALLOC, old, (uintptr_t)p, size);
	else if (old && size == 0)
		log_call(OP_FREE, old, 0, 0);
	return p;
}

#define LOG_KEEP() __asm__ volatile("" ::: "memory") /* the call before is not a tail call */

#ifdef STACKLOG_DIRECT
#define LOG_DEFINE static ALWAYS_INLINE
#define LOG_NAME(function) direct_##function
#define LOG_REAL(function) function
#else
#define LOG_DEFINE LOG_C
#define LOG_NAME(function) function
#define LOG_REAL(function) __libc_##function
LOG_C void *__libc_malloc(size_t n);
LOG_C void *__libc_calloc(size_t n, size_t each);
LOG_C void *__libc_realloc(void *p, size_t n);
LOG_C void *__libc_memalign(size_t align, size_t n);
LOG_C void __libc_free(void *p);
#endif

LOG_DEFINE void *LOG_NAME(malloc)(size_t n)
{
	return log_new(LOG_REAL(malloc)(n), n);
}

LOG_DEFINE void *LOG_NAME(calloc)(size_t n, size_t each)
{
	return log_new(LOG_REAL(calloc)(n, each), n * each);
}

LOG_DEFINE void *LOG_NAME(realloc)(void *p, size_t n)
{
	uintptr_t old = (uintptr_t)p;

	return log_moved(old, LOG_REAL(realloc)(p, n), n);
}

LOG_DEFINE void *LOG_NAME(memalign)(size_t align, size_t n)
{
	return log_new(LOG_REAL(memalign)(align, n), n);
}

LOG_DEFINE void *LOG_NAME(aligned_alloc)(size_t align, size_t n)
{
	return log_new(LOG_REAL(memalign)(align, n), n);
}

LOG_DEFINE int LOG_NAME(posix_memalign)(void **p, size_t align, size_t n)
{
	int code = next_posix_memalign(p, align, n);

	if (!code)
		log_new(*p, n);
	return code;
}

LOG_DEFINE void LOG_NAME(free)(void *p)
{
	if (p)
		log_call(OP_FREE, (uintptr_t)p, 0, 0);
	LOG_REAL(free)(p);
	LOG_KEEP();
}

LOG_DEFINE void *LOG_NAME(reallocarray)(void *p, size_t n, size_t each)
{
	uintptr_t old = (uintptr_t)p;

#ifdef STACKLOG_DIRECT
	return log_moved(old, reallocarray(p, n, each), n * each);
#else
	/* The C library's function would call our realloc. */
	return log_moved(old, __libc_realloc(p, n * each), n * each);
#endif
}

#ifdef STACKLOG_DIRECT
#define malloc direct_malloc
#define calloc direct_calloc
#define realloc direct_realloc
#define reallocarray direct_reallocarray
#define memalign direct_memalign
#define aligned_alloc direct_aligned_alloc
#define posix_memalign direct_posix_memalign
#define free direct_free
#endif

#endif /* STACKLOG_H */
