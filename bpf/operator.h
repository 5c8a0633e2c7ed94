/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * C++ operators new and delete. They may throw, so that no return probe must be
 * put on them, and most end in a function of the allocator, which has probes: so
 * an operator leaves a note in the thread's state, and the call that it makes
 * takes its name from there.
 *
 * A note is not removed when the operator is left, which no probe sees (by a
 * return, an exception or longjmp). So it says nothing by itself: a call is the
 * operator's if the operator's own code has made it. Every way into that code
 * but a jump to the middle of it renews the note, and so what the code calls
 * belongs to the newest note.
 */
#ifndef RTRACE_OPERATOR_H
#define RTRACE_OPERATOR_H

#include "argument.h"
#include "kernel_stack.h"
#include "site.h"

/* return_address reads where the function at whose entry the probe sits returns to. */
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
 * is_made_by says whether the function entered with its return address, caller, at
 * slot was entered by the operator: by a jump, which leaves both as the operator
 * had them, or by a call from its code, from a frame below.
 */
static __always_inline bool is_made_by(const struct operator_note *o, __u64 slot, __u64 caller)
{
	if (slot == o->slot)
		return caller == o->caller;
	return slot < o->slot && caller - o->start < o->length;
}

/*
 * note_operator notes that an operator was entered. The outermost of operators
 * that lead to each other gives the name. A note that has given its name is over:
 * the operator makes one call, and then only tries the same again.
 */
static __always_inline void note_operator(struct pt_regs *ctx, struct operator_note *o, __u64 site,
					  __u64 slot)
{
	__u64 caller = return_address(ctx, slot);

	if (!o->slot || o->used_at || !is_made_by(o, slot, caller))
		o->function = SITE_FUNCTION(site);
	o->slot = slot;
	o->caller = caller;
	o->start = REG_PC(ctx) - SITE_OFFSET(site);
	o->length = SITE_LENGTH(site);
	o->used_at = 0;
}

/*
 * named returns the function that a call of the allocator counts as: the operator
 * that made it, or its own. An operator that has called, and not jumped, calls again
 * from the same frame if that failed, behind the new_handler.
 */
static __always_inline __u16 named(struct pt_regs *ctx, struct operator_note *o, __u64 slot,
				   __u16 function)
{
	if (likely(slot > o->slot))
		return function;
	if (o->used_at && (o->used_at != (__u32)slot || slot == o->slot))
		return function;
	if (!is_made_by(o, slot, return_address(ctx, slot)))
		return function;
	o->used_at = slot;
	return o->function;
}

/* operate sits at the entries of C++ operators that end in another function. */
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
	else if (argument(ctx, SITE_BLOCK_REG(site), slot)) /* deleting nothing leads nowhere */
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
