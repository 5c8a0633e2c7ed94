/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log of C++ operators, by their full names. It is the report of prog.h with the operators
 * as functions; the sizes are those that libstdc++'s operator requests from the allocator.
 */
#ifndef OPLOG_H
#define OPLOG_H

#include "prog.h"

/* The name of size_t in the names of operators. */
#define SIZE_NAME (sizeof(size_t) == 4 ? "unsigned int" : "unsigned long")

struct logged {
	const char *op, *name; /* $ in a name stands for SIZE_NAME */
	uintptr_t old, ptr;
	size_t size;
};

enum { LOG_CALLS = 1 << 16 };
static struct logged log_calls[LOG_CALLS];
static size_t log_length;
static unsigned long caught, thrown;

static ALWAYS_INLINE void log_call(const char *op, const char *name, uintptr_t old, uintptr_t ptr,
				   size_t size)
{
	if (log_length == LOG_CALLS)
		die("the log is full");
	log_calls[log_length++] = { op, name, old, ptr, size };
}

/* log_new logs a block from the function with that name. */
static ALWAYS_INLINE void *log_new(const char *name, void *p, size_t size)
{
	if (!p)
		die("%s failed", name);
	log_call("alloc", name, 0, (uintptr_t)p, size);
	return p;
}

static ALWAYS_INLINE void log_delete(const char *name, uintptr_t p)
{
	log_call("free", name, p, 0, 0);
}

static void log_report(void)
{
	for (size_t i = 0; i < log_length; i++) {
		const struct logged *c = &log_calls[i];
		const char *dollar = strchr(c->name, '$');
		int head = dollar ? (int)(dollar - c->name) : (int)strlen(c->name);

		out("call %d %s %lx %lx %lu %.*s%s%s\n", (int)thread_id(), c->op,
		    (unsigned long)c->old, (unsigned long)c->ptr, (unsigned long)c->size, head,
		    c->name, dollar ? SIZE_NAME : "", dollar ? dollar + 1 : "");
	}
	out("{\"pid\":%d,\"tids\":[%d],\"caught\":%lu,\"thrown\":%lu}\n", (int)getpid(),
	    (int)thread_id(), caught, thrown);
	out_flush();
}

#define NEW "operator new($)"
#define NEW_ARRAY "operator new[]($)"
#define NEW_NOTHROW "operator new($, std::nothrow_t const&)"
#define NEW_ARRAY_NOTHROW "operator new[]($, std::nothrow_t const&)"
#define NEW_ALIGNED "operator new($, std::align_val_t)"
#define NEW_ARRAY_ALIGNED "operator new[]($, std::align_val_t)"
#define NEW_ALIGNED_NOTHROW "operator new($, std::align_val_t, std::nothrow_t const&)"
#define NEW_ARRAY_ALIGNED_NOTHROW "operator new[]($, std::align_val_t, std::nothrow_t const&)"
#define DELETE "operator delete(void*)"
#define DELETE_ARRAY "operator delete[](void*)"
#define DELETE_SIZED "operator delete(void*, $)"
#define DELETE_ARRAY_SIZED "operator delete[](void*, $)"
#define DELETE_NOTHROW "operator delete(void*, std::nothrow_t const&)"
#define DELETE_ARRAY_NOTHROW "operator delete[](void*, std::nothrow_t const&)"
#define DELETE_ALIGNED "operator delete(void*, std::align_val_t)"
#define DELETE_ARRAY_ALIGNED "operator delete[](void*, std::align_val_t)"
#define DELETE_SIZED_ALIGNED "operator delete(void*, $, std::align_val_t)"
#define DELETE_ARRAY_SIZED_ALIGNED "operator delete[](void*, $, std::align_val_t)"
#define DELETE_ALIGNED_NOTHROW "operator delete(void*, std::align_val_t, std::nothrow_t const&)"
#define DELETE_ARRAY_ALIGNED_NOTHROW \
	"operator delete[](void*, std::align_val_t, std::nothrow_t const&)"

#endif /* OPLOG_H */
