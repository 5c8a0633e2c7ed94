// SPDX-License-Identifier: Apache-2.0
/*
 * resources_pool: has allocators of its own, in functions that no other file can call. The pool's
 * are traced with --resource and
 *
 *	pool:alloc=pool_get(size=arg2),alloc=pool_make(id=*arg2,size=arg3*arg4,ok=zero),
 *	realloc=pool_resize(id=arg2,size=arg3),free=pool_put(id=arg2)
 *	handle:alloc=handle_open(id=arg1,ok=nonzero),free=handle_close
 *
 * See resources.h.
 */
#include "resources.h"

struct pool {
	int count;
};

static char memory[1 << 16];
static size_t used;

__attribute__((noinline)) void *pool_get(struct pool *p, size_t size)
{
	void *at = memory + used;

	if (size > sizeof(memory) - used)
		return NULL;
	p->count++;
	used += (size + 15) & ~(size_t)15;
	return at;
}

/* Its own call of pool_get is not recorded separately. */
__attribute__((noinline)) int pool_make(struct pool *p, void **out, size_t count, size_t size)
{
	void *at = pool_get(p, count * size);

	if (!at)
		return -1;
	*out = at;
	return 0;
}

__attribute__((noinline)) void *pool_resize(struct pool *p, void *old, size_t size)
{
	void *at = pool_get(p, size);

	if (at && old)
		memcpy(at, old, 1);
	return at;
}

__attribute__((noinline)) void pool_put(struct pool *p, void *at)
{
	__asm__ volatile("" : : "r"(p), "r"(at) : "memory");
	if (at)
		p->count--;
}

__attribute__((noinline)) int handle_open(long handle)
{
	return handle > 0 && used > 0;
}

__attribute__((noinline)) void handle_close(long handle)
{
	__asm__ volatile("" : : "r"(handle) : "memory");
}

int main(void)
{
	struct pool p = { 0 };
	void *a = pool_get(&p, 100), *b = NULL, *c;

	allocated("pool_get", "pool", (uintptr_t)a, 100, "");
	need(pool_get(&p, 1 << 20) == NULL, "pool_get");
	need(pool_make(&p, &b, 7, 9) == 0 && pool_make(&p, &c, 1 << 10, 1 << 10) != 0, "pool_make");
	allocated("pool_make", "pool", (uintptr_t)b, 63, "");
	c = pool_resize(&p, a, 300);
	freed("pool_resize", "pool", (uintptr_t)a);
	allocated("pool_resize", "pool", (uintptr_t)c, 300, "");
	need(pool_resize(&p, b, 1 << 20) == NULL, "pool_resize");
	a = pool_resize(&p, NULL, 20);
	allocated("pool_resize", "pool", (uintptr_t)a, 20, "");
	pool_put(&p, b);
	freed("pool_put", "pool", (uintptr_t)b);
	pool_put(&p, NULL);
	need(handle_open(33) && !handle_open(0), "handle_open");
	allocated("handle_open", "handle", 33, 1, "");
	handle_close(33);
	freed("handle_close", "handle", 33);
	return tell();
}
