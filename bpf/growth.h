/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Growth of the heap: calls of the C library's sbrk, mmap, mprotect and mremap that its allocator
 * makes. One probe is on each call and one after it, so that other callers do not hit a probe and
 * no return address is touched. The thread has room for one such call: none of them leads to
 * another.
 */
#ifndef RTRACE_GROWTH_H
#define RTRACE_GROWTH_H

#include "argument.h"
#include "emit.h"

/* The system call ABI, the same on all supported machines. */
#define PROT_WRITE 2
#define MAP_ANONYMOUS 0x20

/*
 * is_inside reports whether the call whose return address is at slot is made by a call that is
 * still open.
 */
static __always_inline bool is_inside(struct thread *t, __u64 slot)
{
	__u32 top = t->depth - 1;

	return top < MAX_CALLS && t->calls[top].slot > slot;
}

static __always_inline void enter_growth(struct pt_regs *ctx, struct thread *t, __u64 site)
{
	struct growth *g = &t->growth;
	__u64 slot = REG_SP(ctx) - RETURN_POP;

	if (unlikely(g->slot)) {
		/* Of the code that a signal interrupted, or that was left by longjmp. */
		lose(g->slot > slot ? LOSS_NESTING : LOSS_MISSED_RETURN);
		g->slot = 0;
	}
	if (SITE_NESTED(site) && !is_inside(t, slot))
		return;
	g->addr = CALL_ARGUMENT(ctx, slot, 0);
	g->size = CALL_ARGUMENT(ctx, slot, 1);
	g->old_size = 0;
	g->operation = SITE_OPERATION(site);
	if (g->operation == OPERATION_SBRK) {
		g->size = CALL_ARGUMENT(ctx, slot, 0);
		if ((sword)g->size <= 0)
			return; /* gives memory back, or asks for the end of the heap */
	} else if (g->operation == OPERATION_MREMAP) {
		g->old_size = CALL_ARGUMENT(ctx, slot, 1);
		g->size = CALL_ARGUMENT(ctx, slot, 2);
	} else {
		if (!(CALL_ARGUMENT(ctx, slot, 2) & PROT_WRITE))
			return; /* a reservation, or the reverse */
		if (g->operation == OPERATION_MMAP &&
		    !(CALL_ARGUMENT(ctx, slot, 3) & MAP_ANONYMOUS))
			return;
	}
	g->slot = slot;
}

static __always_inline void leave_growth(struct pt_regs *ctx, struct thread *t, __u64 site)
{
	struct growth *g = &t->growth;
	__u64 slot = REG_SP(ctx) + SITE_PUSHED(site) * sizeof(word) - RETURN_POP;
	__u64 result = read_reg(ctx, SITE_BLOCK_REG(site)), size = g->size;

	if (g->slot != slot)
		return; /* the code after a call can be reached without it */
	g->slot = 0;
	if (g->operation == OPERATION_MPROTECT) {
		if ((__u32)result)
			return;
		result = g->addr;
	} else if (result >= (word)-MAX_ERRNO) {
		return;
	}
	/* The kernel maps whole pages; only the end of the heap is exact. */
	if (g->operation != OPERATION_SBRK)
		size = (size + cfg_page_size - 1) & -cfg_page_size;
	if (g->operation == OPERATION_MREMAP && result == g->addr) {
		__u64 old_size = (g->old_size + cfg_page_size - 1) & -cfg_page_size;

		if (size <= old_size)
			return;
		result += old_size;
		size -= old_size;
	}
	emit_event(ctx, t, RECORD_GROWTH, 0, result, size, 0);
}

#endif
