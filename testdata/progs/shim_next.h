/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator that shim.c wraps, and what serves the calls made while it is looked up.
 */
#ifndef SHIM_NEXT_H
#define SHIM_NEXT_H

#include "shim_log.h"
#include <dlfcn.h>

/* In the order of enum log_function. */
static union {
	struct {
		void *(*malloc)(size_t n);
		void *(*calloc)(size_t n, size_t each);
		void *(*realloc)(void *p, size_t n);
		void *(*reallocarray)(void *p, size_t n, size_t each);
		void (*free)(void *p);
		int (*posix_memalign)(void **to, size_t alignment, size_t n);
		void *(*aligned_alloc)(size_t alignment, size_t n);
		void *(*memalign)(size_t alignment, size_t n);
		void *(*valloc)(size_t n);
		void *(*pvalloc)(size_t n);
	};
	void *all[LOG_FUNCTIONS];
} next;

static enum {
	NEXT_UNKNOWN,
	NEXT_LOOKING,
	NEXT_FOUND, /* but it is not decided yet what to do with the calls */
	NEXT_READY,
} next_state;

/* next_find looks up the functions. It runs before there are threads. */
static int next_find(void)
{
	static const char *const names[LOG_FUNCTIONS] = {
		"malloc",	  "calloc",	   "realloc",  "reallocarray", "free",
		"posix_memalign", "aligned_alloc", "memalign", "valloc",       "pvalloc",
	};
	static uint64_t addresses[LOG_FUNCTIONS];
	int i;

	if (next_state == NEXT_LOOKING)
		return 0;
	if (next_state == NEXT_UNKNOWN) {
		next_state = NEXT_LOOKING;
		for (i = 0; i < LOG_FUNCTIONS; i++) {
			next.all[i] = dlsym(RTLD_NEXT, names[i]);
			addresses[i] = (uintptr_t)next.all[i];
			if (!next.all[i])
				log_die("find the allocator");
		}
		log_next = addresses;
		next_state = NEXT_FOUND;
	}
	if (next_state == NEXT_FOUND && log_setup())
		next_state = NEXT_READY;
	return 1;
}

/* next_ready reports whether calls can be passed on. */
static inline int next_ready(void)
{
	return __builtin_expect(next_state == NEXT_READY, 1) || next_find();
}

/* Blocks for calls made while the allocator is looked up. */
static char early_room[16 << 10] __attribute__((aligned(16)));
static size_t early_used;

static int is_early(const void *p)
{
	return (const char *)p >= early_room && (const char *)p < early_room + sizeof(early_room);
}

static void *early_malloc(size_t n)
{
	size_t at = early_used;

	if (n > sizeof(early_room) - at)
		return NULL;
	early_used = at + ((n + 15) & ~(size_t)15);
	return early_room + at;
}

/* early_realloc moves a block of early_room, or NULL, to the best available allocator. */
static void *early_realloc(void *p, size_t n)
{
	size_t room = p ? (size_t)(early_room + sizeof(early_room) - (char *)p) : 0;
	void *to = next_ready() ? malloc(n) : early_malloc(n);

	return to && p ? memcpy(to, p, n < room ? n : room) : to;
}

#endif /* SHIM_NEXT_H */
