// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Probes of the allocation tracer. One program serves every entry site, one every return; a
 * packed site contains the function and where its arguments are.
 *
 * Rules (docs/design/calls.md): a free counts at its entry, an allocation at its return;
 * only the outermost call of an allocator counts; whatever is not recorded is counted as lost,
 * by reason.
 *
 * Needs Linux 5.10; attach cookies, task storage, bpf_loop and uprobe_multi are used if the
 * kernel has them.
 */
#include "argument.h"
#include "fault.h"
#include "growth.h"
#include "kernel_stack.h"
#include "nested.h"
#include "operator.h"
#include "pass.h"
#include "site.h"
#include "stack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Keeps the records' types in the object's debug information, for the generated Go types. */
const struct event *unused_event __attribute__((unused));
const struct move_event *unused_move_event __attribute__((unused));
const struct stack_record *unused_stack_record __attribute__((unused));
const struct raw_stack *unused_raw_stack __attribute__((unused));
const struct row *unused_row __attribute__((unused));
const struct mapping *unused_mapping __attribute__((unused));
const enum unwind_mode *unused_unwind_mode __attribute__((unused));
const enum work_kind *unused_work_kind __attribute__((unused));
const enum raw_purpose *unused_raw_purpose __attribute__((unused));
const enum record_kind *unused_record_kind __attribute__((unused));
const enum stack_end *unused_stack_end __attribute__((unused));
const enum loss *unused_loss __attribute__((unused));
const enum argument_kind *unused_argument_kind __attribute__((unused));
const enum operation *unused_operation __attribute__((unused));
const enum pass_role *unused_pass_role __attribute__((unused));
const enum site_program *unused_site_program __attribute__((unused));

/* open_call adds a call that stays open until its return is seen. */
static __always_inline struct call *open_call(struct thread *t, __u64 site, __u64 slot)
{
	__u64 depth = t->depth;
	struct call *c;

	/* Keeps clang from omitting the check where it knows more than the verifier. */
	asm volatile("" : "+r"(depth));
	if (depth >= MAX_CALLS) {
		lose(LOSS_NESTING);
		return NULL;
	}
	c = &t->calls[depth];
	c->slot = slot;
	c->function = SITE_FUNCTION(site);
	c->entered = SITE_FUNCTION(site);
	c->operation = SITE_OPERATION(site);
	c->tail_calls = SITE_TAIL_CALLS(site);
	c->reenters = SITE_REENTERS(site);
	c->exits = SITE_EXITS(site);
	c->skip = 0;
	c->entry_lost = 0;
	t->depth = depth + 1;
	return c;
}

static __always_inline void enter_free(struct pt_regs *ctx, struct thread *t, __u64 site,
				       __u64 slot)
{
	__u64 block = argument(ctx, SITE_BLOCK_REG(site), slot), stack = 0;

	if (!block) {
		/* Its return must not be taken for the return of a call that never returned. */
		if (unlikely(SITE_OPENS(site)))
			forget_at(t, slot);
		return;
	}
	if (unlikely(t->internal)) {
		bool own = t->internal == slot;

		t->internal = 0;
		if (own)
			return;
	}
	if (unlikely(t->depth && is_nested(t, REG_PC(ctx), site, slot, return_address(ctx, slot))))
		return;
	if (cfg_backtrace_all)
		stack = record_stack(ctx, t, return_address(ctx, slot), REG_FP(ctx),
				     slot + RETURN_POP);
	emit_event(ctx, t, RECORD_FREE, named(ctx, &t->delete, slot, SITE_FUNCTION(site)), block, 0,
		   stack);
	if (unlikely(SITE_OPENS(site))) {
		struct call *c = open_call(t, site, slot);

		if (c)
			c->skip = 1;
	}
}

static __always_inline void enter_call(struct pt_regs *ctx, struct thread *t, __u64 site,
				       __u64 slot)
{
	__u32 operation = SITE_OPERATION(site);
	struct call *c;

	if (unlikely(t->depth &&
		     is_nested(t, REG_PC(ctx), site, slot, return_address(ctx, slot)))) {
		if (cfg_verify_sites)
			forget_check(slot);
		return;
	}
	c = open_call(t, site, slot);
	if (!c) {
		if (cfg_verify_sites)
			forget_check(slot);
		return;
	}
	c->size = size_argument(ctx, site, slot);
	keep_argument(ctx, c, site, slot);
	if (operation != OPERATION_REALLOC)
		c->function = named(ctx, &t->new, slot, c->function);
	if (operation == OPERATION_ALLOC) {
		c->skip = c->size < cfg_min_size;
		if (unlikely(c->exits))
			c->block = return_address(ctx, slot);
	} else {
		c->block = argument(ctx, SITE_BLOCK_REG(site), slot);
		if (operation == OPERATION_ALLOC_OUT)
			c->skip = c->size < cfg_min_size;
	}
	if (operation == OPERATION_REALLOC && c->block) {
		c->time = bpf_ktime_get_ns();
		c->entry_lost = !emit_event(ctx, t, RECORD_MOVE_ENTER, c->function, c->block, 0, 0);
	}
}

static __always_inline void on_enter(struct pt_regs *ctx)
{
	struct thread *t;
	__u64 site, slot;

	t = current_thread(true);
	if (!t || !find_site(ctx, t, SITE_ENTER, &site))
		return;
	slot = REG_SP(ctx) + SITE_PUSHED(site) * sizeof(word);
	if (unlikely(t->depth))
		drop_stale(t, slot);
	if (unlikely(SITE_LEADS(site)))
		place_text(ctx, t, site);
	if (SITE_OPERATION(site) == OPERATION_FREE)
		enter_free(ctx, t, site, slot);
	else
		enter_call(ctx, t, site, slot);
}

SEC("uprobe")
int enter(struct pt_regs *ctx)
{
	keep_kernel_stack(ctx);
	hit(WORK_HIT);
	on_enter(ctx);
	done();
	return 0;
}

/*
 * finish_realloc reports the effect of a realloc with an old block. If its entry was not sent,
 * another thread may have got the block before, in the order of the trace.
 */
static __always_inline void finish_realloc(struct pt_regs *ctx, struct thread *t, struct call *c,
					   __u64 result, __u64 stack)
{
	bool sent = false;

	if (result)
		sent = emit_move(ctx, t, c, result, stack);
	else if (!c->size)
		sent = emit_event(ctx, t, RECORD_FREE, c->function, c->block, 0, stack);
	else if (!c->entry_lost)
		emit_event(ctx, t, RECORD_MOVE_UNDONE, c->function, c->block, 0, 0);
	if (unlikely(sent && c->entry_lost))
		lose(LOSS_LATE);
}

/* finish_call reports the effect of a call that ended. */
static __always_inline void finish_call(struct pt_regs *ctx, struct thread *t, struct call *c,
					struct ending *e)
{
	__u64 result = e->result, pc = e->pc, fp = e->fp, sp = e->sp, stack = 0;

	if (c->skip)
		return;
	if (c->operation == OPERATION_ALLOC_OUT) {
		__u64 out = c->block;

		if (result)
			return;
		if (read_user(&result, (void *)out)) {
			lose(LOSS_ARGUMENT);
			return;
		}
	}
	if (result || (c->operation == OPERATION_REALLOC && c->block && !c->size))
		stack = stack_or_caller(ctx, t, pc, fp, sp);
	if (c->operation == OPERATION_REALLOC && c->block)
		finish_realloc(ctx, t, c, result, stack);
	else if (result)
		emit_alloc(ctx, t, c, result, stack);
}

/* returned finds the call that returns, and returns the state of its thread; NULL if none does. */
static __noinline struct thread *returned(struct pt_regs *ctx)
{
	__u64 slot = REG_SP(ctx) - RETURN_POP;
	struct ending *e;
	struct thread *t;
	struct call *c;
	__u32 top;

	/* As on entry: a new generation must not hide a call that is still open. */
	t = current_thread(false);
	if (!t)
		return NULL;
	top = t->depth - 1;
	if (top >= MAX_CALLS)
		return NULL;
	c = &t->calls[top];
	if (unlikely(c->slot != slot)) {
		drop_stale(t, slot);
		top = t->depth - 1;
		if (top >= MAX_CALLS)
			return NULL;
		c = &t->calls[top];
		if (c->slot != slot)
			return NULL; /* a nested call, or a call from before the probes */
	}
	t->depth = top;
	t->at = top;
	e = ending_of(t);
	e->result = REG_RET(ctx);
	e->pc = REG_PC(ctx);
	e->fp = REG_FP(ctx);
	e->sp = REG_SP(ctx);
	if (cfg_verify_sites && e->result)
		keep_report(ctx, c, slot, e->result); /* of a site with a return probe */
	return t;
}

/* finish reports the effect of the call that returned or passed has found. */
static __always_inline void finish(struct pt_regs *ctx, struct thread *t)
{
	__u32 at;

	if (!t)
		return;
	at = t->at;
	asm volatile("" : "+r"(at));
	if (at <= PASSED)
		finish_call(ctx, t, &t->calls[at], ending_of(t));
	t->inside = 0;
}

/*
 * leave is where functions return. Where sites have cookies it is also at the sites inside
 * functions, so that the kernel verifies one program that unwinds and not two: their cookies have
 * a role, those of return probes are 0.
 */
SEC("uretprobe")
int leave(struct pt_regs *ctx)
{
	__u64 site = cfg_inside ? bpf_get_attach_cookie(ctx) : 0;
	struct thread *t;

	keep_kernel_stack(ctx);
	if (PASS_ROLE(site)) {
		hit(WORK_HIT);
		t = passed(ctx, site);
	} else {
		hit(WORK_RETURN);
		t = returned(ctx);
	}
	finish(ctx, t); /* once, for the verifier */
	done();
	return 0;
}

/* pass is at the sites inside functions on kernels without cookies. */
SEC("uprobe")
int pass(struct pt_regs *ctx)
{
	keep_kernel_stack(ctx);
	hit(WORK_HIT);
	finish(ctx, passed(ctx, 0));
	done();
	return 0;
}

/*
 * exit_call removes the open call of a function that may throw, if a probe is at one of its ends.
 * If several functions share that code, the place of the return address distinguishes them.
 */
static __always_inline struct call *exit_call(struct thread *t, __u64 slot)
{
	__u32 top;

	if (t->depth)
		drop_stale(t, slot);
	top = t->depth - 1;
	if (top >= MAX_CALLS || !t->calls[top].exits || t->calls[top].slot != slot)
		return NULL;
	t->depth = top;
	return &t->calls[top];
}

/* leave_at is at the return instructions of functions that may throw. */
static __always_inline void on_leave_at(struct pt_regs *ctx)
{
	__u64 slot = REG_SP(ctx);
	struct ending e = { .result = REG_RET(ctx), .fp = REG_FP(ctx), .sp = slot + RETURN_POP };
	struct thread *t;
	struct call *c;

	t = current_thread(false);
	c = t ? exit_call(t, slot) : NULL;
	if (!c)
		return;
	e.pc = return_address(ctx, slot);
	finish_call(ctx, t, c, &e);
}

SEC("uprobe")
int leave_at(struct pt_regs *ctx)
{
	keep_kernel_stack(ctx);
	hit(WORK_HIT);
	on_leave_at(ctx);
	done();
	return 0;
}

/*
 * hand_over is where such functions end in a jump to another traced function: that function's
 * call counts, under the name of the first.
 */
static __always_inline void on_hand_over(struct pt_regs *ctx)
{
	struct thread *t;
	struct call *c;

	t = current_thread(false);
	c = t ? exit_call(t, REG_SP(ctx)) : NULL;
	if (!c)
		return;
	t->new.slot = c->slot;
	t->new.caller = c->block;
	t->new.length = 0; /* it makes no further call */
	t->new.used_at = 0;
	t->new.function = c->function;
}

SEC("uprobe")
int hand_over(struct pt_regs *ctx)
{
	keep_kernel_stack(ctx);
	hit(WORK_HIT);
	on_hand_over(ctx);
	done();
	return 0;
}

/*
 * internal_free is at the calls of free that the allocator makes for itself, to empty a thread's
 * cache at its end: the program has already freed these blocks. It notifies the probe in free
 * through the place of the return address.
 */
static __always_inline void on_internal_free(struct pt_regs *ctx)
{
	struct thread *t;

	t = current_thread(false);
	if (t)
		t->internal = REG_SP(ctx) - RETURN_POP;
}

SEC("uprobe")
int internal_free(struct pt_regs *ctx)
{
	keep_kernel_stack(ctx);
	hit(WORK_HIT);
	on_internal_free(ctx);
	done();
	return 0;
}

/* grow is at the calls with which the allocator gets memory from the system. */
SEC("uprobe")
int grow(struct pt_regs *ctx)
{
	struct thread *t;
	__u64 site;

	keep_kernel_stack(ctx);
	count(WORK_HIT);
	t = current_thread(true);
	if (t && find_site(ctx, t, SITE_GROW, &site))
		enter_growth(ctx, t, site);
	return 0;
}

/* grown is after these calls, where their result is known. */
SEC("uprobe")
int grown(struct pt_regs *ctx)
{
	struct thread *t;
	__u64 site;

	keep_kernel_stack(ctx);
	count(WORK_HIT);
	t = current_thread(false);
	if (t && t->growth.slot && find_site(ctx, t, SITE_GROWN, &site))
		leave_growth(ctx, t, site);
	return 0;
}

/* maps_changed is where the dynamic loader notifies debuggers of a new or removed library. */
SEC("uprobe")
int maps_changed(struct pt_regs *ctx)
{
	struct thread *t;

	keep_kernel_stack(ctx);
	count(WORK_HIT);
	t = current_thread(false);
	if (t)
		emit_event(ctx, t, RECORD_MAPS, 0, 0, 0, 0);
	return 0;
}

/*
 * call_stack runs where a function begins or returns, after a program of functions.bpf.c that has
 * sent the event.
 */
SEC("uprobe")
int call_stack(struct pt_regs *ctx)
{
	__u64 slot = REG_SP(ctx);
	struct thread *t;

	keep_kernel_stack(ctx);
	count(WORK_HIT);
	t = current_thread(true);
	if (t)
		emit_event(ctx, t, RECORD_CALL_STACK, 0, slot, 0,
			   record_stack(ctx, t, return_address(ctx, slot), REG_FP(ctx),
					slot + RETURN_POP));
	return 0;
}

/* returned_stack is call_stack after the return of a function. */
SEC("uprobe")
int returned_stack(struct pt_regs *ctx)
{
	struct thread *t;

	keep_kernel_stack(ctx);
	count(WORK_RETURN);
	t = current_thread(true);
	if (t)
		emit_event(ctx, t, RECORD_CALL_STACK, 0, REG_SP(ctx) - RETURN_POP, 0,
			   record_stack(ctx, t, REG_PC(ctx), REG_FP(ctx), REG_SP(ctx)));
	return 0;
}
