/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sites in the middle of a function that allocates, where its arguments and the block are known
 * (docs/sites.md). One hit records a call, without a return probe.
 *
 * The thread keeps nothing about such a call while it is in progress, so it cannot be left open.
 * Only where the arguments are known earlier than the block does the thread keep a note of them.
 */
#ifndef RTRACE_PASS_H
#define RTRACE_PASS_H

#include "argument.h"
#include "check.h"
#include "kernel_stack.h"
#include "nested.h"
#include "operator.h"
#include "stack.h"

/*
 * A packed site in the middle of a function: as at entries (records.h), except for bits 10-13 and
 * 39 condition code of the processor and whether there is one, 29-34 words pushed before the
 * site, 35-37 words from the return address down to where the caller's frame pointer was saved, 0
 * if it is still in its register, 59-60 role. Places from 16 on are words above the stack
 * pointer.
 */
#define PASS_CODE(s) ((__u32)((s) >> 10) & 0xf)
#define PASS_CONDITIONAL(s) ((__u32)((s) >> 39) & 1)
#define PASS_PUSHED(s) ((__u64)((s) >> 29) & 0x3f)
#define PASS_FRAME(s) ((__u32)((s) >> 35) & 7)
#define PASS_ROLE(s) ((__u32)((s) >> 59) & 3)
#define PASS_STACK 16

enum pass_role {
	PASS_REPORT, /* arguments and block are known */
	PASS_NOTE, /* the arguments are known */
	PASS_FINISH, /* the block is known, and a note has the arguments */
};

#if defined(__TARGET_ARCH_x86)

/* pass_holds reports whether the condition of a site holds. */
static __always_inline bool pass_holds(struct pt_regs *ctx, __u64 site)
{
	__u64 f = CONTEXT_WORD(ctx, eflags);
	__u32 carry = f & 1, parity = f >> 2 & 1, zero = f >> 6 & 1, sign = f >> 7 & 1,
	      overflow = f >> 11 & 1, less = sign ^ overflow, code = PASS_CODE(site), all;

	/* By the upper three bits of the condition code; the lowest bit inverts it. */
	all = overflow | carry << 1 | zero << 2 | (carry | zero) << 3 | sign << 4 | parity << 5 |
	      less << 6 | (less | zero) << 7;
	return !PASS_CONDITIONAL(site) || ((all >> (code >> 1) ^ code) & 1);
}

#else

/* No plan has such sites on this machine. */
static __always_inline bool pass_holds(struct pt_regs *ctx, __u64 site)
{
	return false;
}

#endif

/* pass_value reads a value at a place of a packed site. */
static __always_inline __u64 pass_value(struct pt_regs *ctx, __u32 place)
{
	__u64 value = 0;

	if (place < PASS_STACK)
		return read_reg(ctx, place);
	if (place == NO_REG)
		return 0;
	if (read_user(&value, (void *)(REG_SP(ctx) + (place - PASS_STACK) * sizeof(word))))
		lose(LOSS_ARGUMENT);
	return value;
}

/* pass_arguments reads the arguments of a call. */
static __always_inline void pass_arguments(struct pt_regs *ctx, struct call *c, __u64 site)
{
	__u64 count = pass_value(ctx, SITE_COUNT_REG(site));

	c->size = pass_value(ctx, SITE_SIZE_REG(site));
	keep_values(c, site, c->size, count);
	/* A call that has a block has a product without overflow. */
	if (SITE_COUNT_REG(site) != NO_REG && !SITE_ALIGNMENT(site))
		c->size *= count;
}

/*
 * put_note keeps the arguments of a call until its block is known. There is room for the calls of
 * signal handlers that interrupt one; notes below slot belong to calls that failed or were left.
 */
static __always_inline void put_note(struct thread *t, struct call *c, __u64 slot)
{
	struct note *free = NULL, *n = NULL;

	for (int i = 0; i < MAX_NOTES; i++) {
		struct note *o = &t->notes[i];

		if (o->slot == slot)
			n = o;
		else if (o->slot < slot)
			free = o;
	}
	if (!n)
		n = free;
	if (unlikely(!n)) {
		lose(LOSS_NESTING);
		n = &t->notes[0];
	}
	n->slot = slot;
	n->size = c->size;
	n->argument = c->argument;
	n->argument_kind = c->argument_kind;
}

/* take_note moves the note of the call at slot into c, and reports whether there is one. */
static __always_inline bool take_note(struct thread *t, struct call *c, __u64 slot)
{
	bool found = false;

	for (int i = 0; i < MAX_NOTES; i++) {
		struct note *n = &t->notes[i];

		if (n->slot != slot)
			continue;
		n->slot = 0;
		c->size = n->size;
		c->argument = n->argument;
		c->argument_kind = n->argument_kind;
		found = true;
	}
	return found;
}

/*
 * pass_frame reads the caller's frame pointer and the return address, which a return probe of
 * somebody else may have replaced, into the thread's window.
 */
static __always_inline bool pass_frame(struct pt_regs *ctx, struct thread *t, __u64 site,
				       __u64 slot)
{
	__u32 saved = PASS_FRAME(site);

	return !bpf_probe_read_user(t->window.words, (saved + 1) * sizeof(word),
				    (void *)(slot - saved * sizeof(word)));
}

/* lose_pass counts a call of a thread that could not get a state. */
static __noinline int lose_pass(struct pt_regs *ctx)
{
	__u32 pid = current_ids() >> 32;
	__u64 site;

	if (!enabled || !bpf_map_lookup_elem(&targets, &pid) ||
	    !find_site_of(ctx, pid, SITE_PASS, &site))
		return 0;
	if (PASS_ROLE(site) != PASS_NOTE && pass_holds(ctx, site) &&
	    pass_value(ctx, SITE_BLOCK_REG(site)))
		lose(LOSS_STATE);
	return 0;
}

/* record_pass records the call of c, whose return address is at slot. */
static __always_inline void record_pass(struct pt_regs *ctx, struct thread *t, struct call *c,
					__u64 site, __u64 slot, __u64 block)
{
	__u64 caller, pc, fp = REG_FP(ctx), stack;

	/* Keeps clang from loading one of two places through one pointer. */
	asm volatile("" : "+r"(fp));
	forget_window(t, slot);
	if (unlikely(!pass_frame(ctx, t, site, slot))) {
		lose(LOSS_ARGUMENT);
		return;
	}
	caller = pc = t->window.words[PASS_FRAME(site)];
	if (PASS_FRAME(site))
		fp = t->window.words[0];
	if (unlikely(is_stub(caller))) {
		pc = true_return(caller, slot);
		if (!pc)
			pc = caller;
	}
	if (unlikely(t->depth)) {
		drop_stale(t, slot);
		if (is_nested(ctx, t, site, slot, caller))
			return;
	}
	c->function = named_by(&t->new, slot, pc, SITE_FUNCTION(site));
	if (c->size < cfg_min_size)
		return;
	t->inside = REG_SP(ctx);
	stack = stack_or_caller(ctx, t, pc, fp, slot + RETURN_POP);
	t->inside = 0;
	emit_alloc(ctx, t, c, block, stack);
}

static __always_inline void on_pass(struct pt_regs *ctx)
{
	struct thread *t = current_thread(false);
	struct call c = {};
	__u64 site, slot, block;

	if (unlikely(!t)) {
		lose_pass(ctx);
		return;
	}
	if (!find_site(ctx, t, SITE_PASS, &site) || !pass_holds(ctx, site))
		return;
	slot = REG_SP(ctx) + PASS_PUSHED(site) * sizeof(word);
	if (PASS_ROLE(site) == PASS_NOTE) {
		pass_arguments(ctx, &c, site);
		put_note(t, &c, slot);
		return;
	}
	block = pass_value(ctx, SITE_BLOCK_REG(site));
	if (PASS_ROLE(site) == PASS_REPORT)
		pass_arguments(ctx, &c, site);
	else if (!take_note(t, &c, slot))
		return; /* it began before the probes */
	if (!block)
		return;
	if (cfg_verify_sites)
		keep_report(ctx, &c, slot, block);
	record_pass(ctx, t, &c, site, slot, block);
}

SEC("uprobe")
int pass(struct pt_regs *ctx)
{
	keep_kernel_stack(ctx);
	hit(WORK_HIT);
	on_pass(ctx);
	done();
	return 0;
}

#endif
