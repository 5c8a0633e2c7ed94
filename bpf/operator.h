/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * C++ operators new and delete. They may throw, so they must not have a return probe. Most end in
 * a function of the allocator, which has probes: so an operator leaves a note in the thread's
 * state, and the call that it makes takes its name from there.
 *
 * No probe sees an operator end (by a return, an exception or longjmp), so a note is not removed
 * then and proves nothing by itself: a call is the operator's if the operator's own code has made
 * it. Every way into that code, except a jump into the middle, renews the note, so a call from
 * the code belongs to the newest note.
 */
#ifndef RTRACE_OPERATOR_H
#define RTRACE_OPERATOR_H

#include "argument.h"
#include "kernel_stack.h"
#include "site.h"

/* return_address reads the return address of the function at whose entry the probe is. */
static __always_inline __u64 return_address(struct pt_regs *ctx, __u64 slot)
{
#if defined(__TARGET_ARCH_arm64)
	return REG_LR(ctx);
#else
	__u64 pc = 0;

	if (read_user(&pc, (void *)slot))
		lose(LOSS_ARGUMENT);
	return pc;
#endif
}

/*
 * is_made_by reports whether the operator entered the function whose return address, caller, is
 * at slot: by a jump, which leaves both as they were for the operator, or by a call from its
 * code, from a frame below.
 */
static __always_inline bool is_made_by(const struct operator_note *o, __u64 slot, __u64 caller)
{
	if (slot == o->slot)
		return caller == o->caller;
	return slot < o->slot && caller - o->start < o->length;
}

/*
 * note_operator records that an operator was entered. The outermost of operators that lead to
 * each other determines the name. A note that was used is finished: the operator makes one call,
 * and then only repeats it.
 */
static __always_inline void note_operator(struct pt_regs *ctx, struct operator_note *o, __u64 site,
					  __u64 slot)
{
	__u64 caller = return_address(ctx, slot);

	if (!o->slot || o->used_at || !is_made_by(o, slot, caller))
		o->function = SITE_FUNCTION(site);
	o->slot = slot;
	/* One that ends in no jump makes its call from a frame of its own. */
	o->caller = SITE_TAIL_CALLS(site) ? caller : 0;
	o->start = REG_PC(ctx) - SITE_OFFSET(site);
	o->length = SITE_LENGTH(site);
	o->used_at = 0;
}

/*
 * named_by returns the function that a call of the allocator counts as: the operator that made
 * it, or its own. An operator that has called, and not jumped, repeats a failed call from the same
 * frame after the new_handler.
 */
static __always_inline __u16 named_by(struct operator_note *o, __u64 slot, __u64 caller,
				      __u16 function)
{
	if (likely(slot > o->slot))
		return function;
	if (o->used_at && (o->used_at != (__u32)slot || slot == o->slot))
		return function;
	if (!is_made_by(o, slot, caller))
		return function;
	o->used_at = slot;
	return o->function;
}

/* named is named_by at the entry of the function. */
static __always_inline __u16 named(struct pt_regs *ctx, struct operator_note *o, __u64 slot,
				   __u16 function)
{
	if (likely(slot > o->slot))
		return function;
	return named_by(o, slot, return_address(ctx, slot), function);
}

/* operate is at the entries of C++ operators that end in another function. */
static __always_inline void on_operate(struct pt_regs *ctx)
{
	struct thread *t;
	__u64 site, slot;

	t = current_thread(false);
	if (!t || !find_site(ctx, t, SITE_OPERATE, &site))
		return;
	slot = REG_SP(ctx) + SITE_PUSHED(site) * sizeof(word);
	if (SITE_OPERATION(site) != OPERATION_FREE)
		note_operator(ctx, &t->new, site, slot);
	else if (argument(ctx, SITE_BLOCK_REG(site), slot)) /* deleting null leads nowhere */
		note_operator(ctx, &t->delete, site, slot);
}

SEC("uprobe")
int operate(struct pt_regs *ctx)
{
	keep_kernel_stack(ctx);
	hit(WORK_HIT);
	on_operate(ctx);
	done();
	return 0;
}

#endif
