// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Probes of the allocation tracer. One program serves every entry site, one
 * every return; a packed site says which function it is and where its arguments
 * are.
 *
 * Rules (docs/architecture.md, "In the kernel"): a free counts at its entry,
 * an allocation at its return; only the outermost call of an allocator counts;
 * whatever is not recorded is counted as lost, by reason.
 *
 * Needs Linux 5.10; attach cookies, task storage, bpf_loop and uprobe_multi are
 * used where the kernel has them.
 */
#include "argument.h"
#include "growth.h"
#include "kernel_stack.h"
#include "site.h"
#include "stack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Keeps the records' types in the object's debug information, for their Go twins. */
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
const enum operation *unused_operation __attribute__((unused));
const enum site_program *unused_site_program __attribute__((unused));

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

/* drop_stale forgets calls below slot: their frames are gone, they never returned. */
static __always_inline void drop_stale(struct thread *t, __u64 slot)
{
	for (int i = 0; i < MAX_CALLS; i++) {
		__u32 top = t->depth - 1;

		if (top >= MAX_CALLS || t->calls[top].slot >= slot)
			break;
		t->depth = top;
		lose(LOSS_MISSED_RETURN);
	}
}

#ifdef WORD_32

/*
 * is_library says whether the call at slot comes from the allocator's library.
 * Functions of 32-bit glibc call each other where those of others jump, so more
 * depends on it: reallocarray calls realloc, which jumps to malloc. Right after exec
 * the tracer has not said yet where the code is, but the site knows. And the return
 * address may be that of realloc, which its return probe has replaced.
 */
static __always_inline bool is_library(struct pt_regs *ctx, struct thread *t, __u64 site,
				       __u64 slot, __u64 caller)
{
	__u64 mask = cfg_page_size - 1;
	__u64 length = t->target.text_end - (t->target.text_start & ~mask);
	__u64 start = (REG_PC(ctx) & ~mask) - SITE_PAGES(site) * cfg_page_size;

	if (caller - start < length)
		return true;
	caller = true_return(caller, slot);
	return caller && caller - start < length;
}

#else

static __always_inline bool is_library(struct pt_regs *ctx, struct thread *t, __u64 site,
				       __u64 slot, __u64 caller)
{
	return caller >= t->target.text_start && caller < t->target.text_end;
}

#endif

/*
 * is_nested says whether the call at slot was made by the allocator itself, on
 * behalf of a call that is still open. A call from elsewhere while one is open
 * comes from a signal handler and counts.
 */
static __always_inline bool is_nested(struct pt_regs *ctx, struct thread *t, __u64 site, __u64 slot,
				      __u64 caller)
{
	__u32 top = t->depth - 1;

	if (top >= MAX_CALLS)
		return false;
	if (t->calls[top].slot == slot) {
		/* Same frame: entered by a jump, or the open call left by longjmp. */
		if (t->calls[top].tail_calls)
			return true;
		t->depth = top;
		lose(LOSS_MISSED_RETURN);
		return false;
	}
	return is_library(ctx, t, site, slot, caller);
}

static __always_inline __u64 size_argument(struct pt_regs *ctx, __u64 site, __u64 slot)
{
	__u64 size = argument(ctx, SITE_SIZE_REG(site), slot), count, limit;

	if (SITE_COUNT_REG(site) == NO_REG)
		return SITE_OVERFLOW_FLAG(site) && REG_OVERFLOW(ctx) ? ~0ULL : size;
	count = argument(ctx, SITE_COUNT_REG(site), slot);
	if (!count)
		return 0;
	limit = (word)~0ULL / count;
	/* Keeps clang from a 128-bit multiplication, which BPF has not. */
	asm volatile("" : "+r"(limit));
	if (size > limit)
		return ~0ULL; /* the allocator refuses it, too */
	return size * count;
}

static __always_inline void enter_free(struct pt_regs *ctx, struct thread *t, __u64 site,
				       __u64 slot)
{
	__u64 block = argument(ctx, SITE_BLOCK_REG(site), slot), stack = 0;

	if (!block)
		return;
	if (unlikely(t->internal)) {
		bool own = t->internal == slot;

		t->internal = 0;
		if (own)
			return;
	}
	if (unlikely(t->depth && is_nested(ctx, t, site, slot, return_address(ctx, slot))))
		return;
	if (cfg_backtrace_all)
		stack = record_stack(ctx, t, return_address(ctx, slot), REG_FP(ctx),
				     slot + RETURN_POP);
	emit_event(ctx, t, RECORD_FREE, SITE_FUNCTION(site), block, 0, stack);
}

static __always_inline void enter_call(struct pt_regs *ctx, struct thread *t, __u64 site,
				       __u64 slot)
{
	__u32 depth, operation = SITE_OPERATION(site);
	struct call *c;

	if (unlikely(t->depth && is_nested(ctx, t, site, slot, return_address(ctx, slot))))
		return;
	depth = t->depth;
	if (depth >= MAX_CALLS) {
		lose(LOSS_NESTING);
		return;
	}
	c = &t->calls[depth];
	c->slot = slot;
	c->size = size_argument(ctx, site, slot);
	c->function = SITE_FUNCTION(site);
	c->operation = operation;
	c->tail_calls = SITE_TAIL_CALLS(site);
	c->skip = 0;
	if (operation == OPERATION_ALLOC) {
		c->skip = c->size < cfg_min_size;
	} else {
		c->block = argument(ctx, SITE_BLOCK_REG(site), slot);
		if (operation == OPERATION_ALLOC_OUT)
			c->skip = c->size < cfg_min_size;
	}
	t->depth = depth + 1;
	if (operation == OPERATION_REALLOC && c->block) {
		c->time = bpf_ktime_get_ns();
		emit_event(ctx, t, RECORD_MOVE_ENTER, c->function, c->block, 0, 0);
	}
}

SEC("uprobe")
int enter(struct pt_regs *ctx)
{
	struct thread *t;
	__u64 site, slot;

	keep_kernel_stack(ctx);
	t = current_thread();
	if (!t || !find_site(ctx, t, SITE_ENTER, &site))
		return 0;
	slot = REG_SP(ctx) + SITE_PUSHED(site) * sizeof(word);
	if (unlikely(t->depth))
		drop_stale(t, slot);
	if (SITE_OPERATION(site) == OPERATION_FREE)
		enter_free(ctx, t, site, slot);
	else
		enter_call(ctx, t, site, slot);
	return 0;
}

/* finish_realloc reports what a realloc with an old block did. */
static __always_inline void finish_realloc(struct pt_regs *ctx, struct thread *t, struct call *c,
					   __u64 result, __u64 stack)
{
	if (result)
		emit_move(ctx, t, c, result, stack);
	else if (!c->size)
		emit_event(ctx, t, RECORD_FREE, c->function, c->block, 0, stack);
	else
		emit_event(ctx, t, RECORD_MOVE_UNDONE, c->function, c->block, 0, 0);
}

SEC("uretprobe")
int leave(struct pt_regs *ctx)
{
	__u64 slot = REG_SP(ctx) - RETURN_POP, result = REG_RET(ctx), stack = 0;
	struct thread *t;
	struct call *c;
	__u32 top;

	keep_kernel_stack(ctx);
	/* As on entry: a new generation must not hide a call that is still open. */
	t = current_thread();
	if (!t)
		return 0;
	top = t->depth - 1;
	if (top >= MAX_CALLS)
		return 0;
	c = &t->calls[top];
	if (unlikely(c->slot != slot)) {
		drop_stale(t, slot);
		top = t->depth - 1;
		if (top >= MAX_CALLS)
			return 0;
		c = &t->calls[top];
		if (c->slot != slot)
			return 0; /* a nested call, or one that was entered before the probes */
	}
	t->depth = top;
	if (c->skip)
		return 0;
	if (c->operation == OPERATION_ALLOC_OUT) {
		__u64 out = c->block;

		if (result)
			return 0;
		if (read_user(&result, (void *)out)) {
			lose(LOSS_ARGUMENT);
			return 0;
		}
	}
	if (result || (c->operation == OPERATION_REALLOC && c->block && !c->size))
		stack = record_stack(ctx, t, REG_PC(ctx), REG_FP(ctx), REG_SP(ctx));
	if (c->operation == OPERATION_REALLOC && c->block)
		finish_realloc(ctx, t, c, result, stack);
	else if (result)
		emit_event(ctx, t, RECORD_ALLOC, c->function, result, c->size, stack);
	return 0;
}

/*
 * internal_free sits on the calls of free that the allocator makes for itself,
 * to empty a thread's cache at its end: these blocks the program has freed
 * already. It tells the probe in free by the place of the return address.
 */
SEC("uprobe")
int internal_free(struct pt_regs *ctx)
{
	struct thread *t;

	keep_kernel_stack(ctx);
	t = current_thread();
	if (t)
		t->internal = REG_SP(ctx) - RETURN_POP;
	return 0;
}

/* grow sits on the calls by which the allocator asks the system for memory. */
SEC("uprobe")
int grow(struct pt_regs *ctx)
{
	struct thread *t;
	__u64 site;

	keep_kernel_stack(ctx);
	t = current_thread();
	if (t && find_site(ctx, t, SITE_GROW, &site))
		enter_growth(ctx, t, site);
	return 0;
}

/* grown sits behind these calls, where their result is known. */
SEC("uprobe")
int grown(struct pt_regs *ctx)
{
	struct thread *t;
	__u64 site;

	keep_kernel_stack(ctx);
	t = current_thread();
	if (t && t->growth.slot && find_site(ctx, t, SITE_GROWN, &site))
		leave_growth(ctx, t, site);
	return 0;
}

/* maps_changed sits where the dynamic loader tells debuggers of a new or removed library. */
SEC("uprobe")
int maps_changed(struct pt_regs *ctx)
{
	struct thread *t;

	keep_kernel_stack(ctx);
	t = current_thread();
	if (t)
		emit_event(ctx, t, RECORD_MAPS, 0, 0, 0, 0);
	return 0;
}
