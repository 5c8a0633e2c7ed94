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
 * if it is still in its register, 59-60 role, 61 some value is on the stack. Places from 16 on are
 * words above the stack pointer.
 */
#define PASS_CODE(s) ((__u32)((s) >> 10) & 0xf)
#define PASS_CONDITIONAL(s) ((__u32)((s) >> 39) & 1)
#define PASS_PUSHED(s) ((__u64)((s) >> 29) & 0x3f)
#define PASS_FRAME(s) ((__u32)((s) >> 35) & 7)
#define PASS_ROLE(s) ((__u32)((s) >> 59) & 3)
#define PASS_ON_STACK(s) ((__u32)((s) >> 61) & 1)
#define PASS_STACK 16

enum pass_role {
	PASS_NONE, /* it is not such a site */
	PASS_REPORT, /* arguments and block are known */
	PASS_NOTE, /* the arguments are known */
	PASS_FINISH, /* the block is known, and a note has the arguments */
};

#if defined(__TARGET_ARCH_x86) && !defined(WORD_32)

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

/* read_place copies a word of the stack to the thread's window if a place is one. */
static __always_inline void read_place(struct thread *t, __u64 sp, __u32 place)
{
	if (place < PASS_STACK || place == NO_REG)
		return;
	if (read_user(&t->window.words[place], (void *)(sp + (place - PASS_STACK) * sizeof(word))))
		lose(LOSS_ARGUMENT);
}

/* read_places copies the values of a site that are on the stack. */
VERIFIED_ONCE int read_places(struct thread *t, __u64 sp, __u64 site)
{
	if (!t)
		return 0;
	read_place(t, sp, SITE_SIZE_REG(site));
	read_place(t, sp, SITE_COUNT_REG(site));
	read_place(t, sp, SITE_BLOCK_REG(site));
	return 0;
}

/*
 * keep_places copies the values of a site to the thread's window, by the numbers of their places.
 * So the verifier sees one read of each value and not a choice between sixteen registers.
 */
static __always_inline void keep_places(struct pt_regs *ctx, struct thread *t, __u64 site)
{
	word *at = t->window.words;

	at[0] = CONTEXT_WORD(ctx, rax);
	at[1] = CONTEXT_WORD(ctx, rcx);
	at[2] = CONTEXT_WORD(ctx, rdx);
	at[3] = CONTEXT_WORD(ctx, rbx);
	at[4] = CONTEXT_WORD(ctx, rsp);
	at[5] = CONTEXT_WORD(ctx, rbp);
	at[6] = CONTEXT_WORD(ctx, rsi);
	at[7] = CONTEXT_WORD(ctx, rdi);
	at[8] = CONTEXT_WORD(ctx, r8);
	at[9] = CONTEXT_WORD(ctx, r9);
	at[10] = CONTEXT_WORD(ctx, r10);
	at[11] = CONTEXT_WORD(ctx, r11);
	at[12] = CONTEXT_WORD(ctx, r12);
	at[13] = CONTEXT_WORD(ctx, r13);
	at[14] = CONTEXT_WORD(ctx, r14);
	at[15] = CONTEXT_WORD(ctx, r15);
	at[NO_REG] = 0;
	if (unlikely(PASS_ON_STACK(site)))
		read_places(t, REG_SP(ctx), site);
}

/* kept_value returns the value at a place of a packed site, after keep_places. */
static __always_inline __u64 kept_value(struct thread *t, __u32 place)
{
	return t->window.words[place];
}

/* keep_arguments reads the arguments of a call, after keep_places. */
static __always_inline void keep_arguments(struct thread *t, struct call *c, __u64 site)
{
	__u64 count = kept_value(t, SITE_COUNT_REG(site));

	c->size = kept_value(t, SITE_SIZE_REG(site));
	keep_values(c, site, c->size, count);
	/* A call that has a block has a product without overflow. */
	if (SITE_COUNT_REG(site) != NO_REG && !SITE_ALIGNMENT(site))
		c->size *= count;
}

/*
 * found_at keeps a number in memory, where the verifier does not follow it: it sees one way on and
 * not one for each number.
 */
static __always_inline void found_at(struct thread *t, __u32 n)
{
	*(volatile __u32 *)&t->at = n;
}

/*
 * put_note keeps the arguments of a call until its block is known. There is room for the calls of
 * signal handlers that interrupt one; notes below slot belong to calls that failed or were left.
 */
VERIFIED_ONCE int put_note(struct thread *t, struct call *c, __u64 slot)
{
	struct note *n;
	__u32 at;

	if (!t || !c)
		return 0;
	found_at(t, MAX_NOTES);
	for (int i = 0; i < MAX_NOTES; i++)
		if (t->notes[i].slot < slot)
			found_at(t, i);
	for (int i = 0; i < MAX_NOTES; i++)
		if (t->notes[i].slot == slot)
			found_at(t, i);
	at = *(volatile __u32 *)&t->at;
	if (unlikely(at >= MAX_NOTES)) {
		lose(LOSS_NESTING);
		at = 0;
	}
	n = &t->notes[at];
	n->slot = slot;
	n->size = c->size;
	n->argument = c->argument;
	n->argument_kind = c->argument_kind;
	return 0;
}

/* take_note moves the note of the call at slot into c, and reports whether there is one. */
VERIFIED_ONCE bool take_note(struct thread *t, struct call *c, __u64 slot)
{
	struct note *n;
	__u32 at;

	if (!t || !c)
		return false;
	found_at(t, MAX_NOTES);
	for (int i = 0; i < MAX_NOTES; i++)
		if (t->notes[i].slot == slot)
			found_at(t, i);
	at = *(volatile __u32 *)&t->at;
	if (at >= MAX_NOTES)
		return false;
	n = &t->notes[at];
	n->slot = 0;
	c->size = n->size;
	c->argument = n->argument;
	c->argument_kind = n->argument_kind;
	return true;
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

/* pass_block reads the block of a call whose thread has no state. */
static __always_inline __u64 pass_block(struct pt_regs *ctx, __u64 site)
{
	__u32 place = SITE_BLOCK_REG(site);
	__u64 value = 0;

	if (place < PASS_STACK)
		return read_reg(ctx, place);
	read_user(&value, (void *)(REG_SP(ctx) + (place - PASS_STACK) * sizeof(word)));
	return value;
}

/* lose_pass counts a call of a thread that could not get a state. */
static __noinline int lose_pass(struct pt_regs *ctx)
{
	__u32 pid = current_ids() >> 32;
	__u64 site;

	if (!enabled || !bpf_map_lookup_elem(&targets, &pid) ||
	    !find_site_of(ctx, pid, SITE_PASS, &site))
		return 0;
	if (PASS_ROLE(site) != PASS_NOTE && pass_holds(ctx, site) && pass_block(ctx, site))
		lose(LOSS_STATE);
	return 0;
}

/* is_counted names the call of c, whose return address is at slot, and reports whether it counts. */
static __always_inline bool is_counted(struct pt_regs *ctx, struct thread *t, struct call *c,
				       __u64 site, __u64 slot)
{
	__u64 caller, pc, fp = REG_FP(ctx);
	struct ending *e = ending_of(t);

	/* Keeps clang from loading one of two places through one pointer. */
	asm volatile("" : "+r"(fp));
	if (unlikely(!pass_frame(ctx, t, site, slot))) {
		lose(LOSS_ARGUMENT);
		return false;
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
		if (is_nested(t, REG_PC(ctx), site, slot, caller))
			return false;
	}
	c->function = named_by(&t->new, slot, pc, SITE_FUNCTION(site));
	e->pc = pc;
	e->fp = fp;
	return c->size >= cfg_min_size;
}

/*
 * passed finds the call that passes a site, and returns the state of its thread if the site
 * records it, else NULL. site is the packed site where these are cookies.
 */
static __noinline struct thread *passed(struct pt_regs *ctx, __u64 site)
{
	struct thread *t = current_thread(false);
	struct call *c;
	__u64 slot, block;

	if (unlikely(!t)) {
		lose_pass(ctx);
		return NULL;
	}
	if ((!cfg_cookies && !find_site(ctx, t, SITE_PASS, &site)) || !pass_holds(ctx, site))
		return NULL;
	slot = REG_SP(ctx) + PASS_PUSHED(site) * sizeof(word);
	c = &t->calls[PASSED];
	keep_places(ctx, t, site);
	if (PASS_ROLE(site) == PASS_NOTE) {
		keep_arguments(t, c, site);
		put_note(t, c, slot);
		return NULL;
	}
	block = kept_value(t, SITE_BLOCK_REG(site));
	if (PASS_ROLE(site) == PASS_REPORT)
		keep_arguments(t, c, site);
	else if (!take_note(t, c, slot))
		return NULL; /* it began before the probes */
	if (!block)
		return NULL;
	if (cfg_verify_sites)
		keep_report(ctx, c, slot, block);
	if (!is_counted(ctx, t, c, site, slot))
		return NULL;
	c->operation = OPERATION_ALLOC;
	t->at = PASSED;
	ending_of(t)->result = block;
	ending_of(t)->sp = slot + RETURN_POP;
	t->inside = REG_SP(ctx);
	return t;
}

#else

/* No plan has such sites on this machine. */
static __always_inline struct thread *passed(struct pt_regs *ctx, __u64 site)
{
	return NULL;
}

#endif
#endif
