/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From frame to frame: with the rules of the unwind tables, or with the frame pointer where there
 * are none. Of the registers that a callee may preserve, only the frame pointer is tracked; rules
 * that need others are marked in the tables.
 */
#ifndef RTRACE_FRAME_H
#define RTRACE_FRAME_H

#include "tables.h"
#include "trampoline.h"
#include "window.h"

static __always_inline long stop(struct thread *t, __u8 end)
{
	t->walk.end = end;
	if (end == STACK_UNREADABLE)
		t->walk.uncached = 1; /* it may be readable the next time */
	return STOP;
}

static __always_inline __u64 mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * GOLDEN;
	return hash ^ hash >> 32;
}

/* user_code strips the signature that a saved return address may have. */
static __always_inline __u64 user_code(__u64 addr)
{
	return SIGNED_RETURNS ? addr & cfg_address_mask : addr;
}

/* frame_pointer reads the frame pointer of the current frame. */
VERIFIED_ONCE bool frame_pointer(struct thread *t)
{
	__u64 value = 0;

	if (!t)
		return false;
	switch (t->walk.fp_at) {
	case FP_FIRST:
		t->walk.fp_needed = 1;
		return true;
	case FP_VALUE:
		return true;
	case FP_SAVED:
		if (!read_extra(t, t->walk.fp, &value))
			return false;
		t->walk.fp = value;
		t->walk.fp_at = FP_VALUE;
		return true;
	}
	return false;
}

static __always_inline void fp_saved_at(struct thread *t, __u64 addr)
{
	t->walk.fp = addr;
	t->walk.fp_at = FP_SAVED;
}

/* keep_slot stores where the return address of frame n was. */
static __always_inline void keep_slot(struct thread *t, __u32 n, __u64 addr)
{
	__u64 at = addr - t->walk.first_sp;

	if (at >= WINDOW_BYTES) {
		t->walk.beyond++;
		at = SLOT_FAR;
	}
	if (addr - t->walk.first_sp < FAR_LIMIT && n < MAX_SLOTS)
		t->walk.slot[n] = at;
	else
		t->walk.uncached = 1;
}

/*
 * enter_frame continues with the caller, whose address ra was found at slot and whose stack
 * begins at sp.
 */
static __always_inline long enter_frame(struct thread *t, __u64 ra, __u64 sp, __u64 slot)
{
	__u32 n = t->walk.depth;

	/* A word that ends the stack also decides it. */
	if (unlikely(!ra || n >= cfg_depth || n >= MAX_DEPTH)) {
		keep_extra(t, slot);
		/* Zero marks the outermost frame of some threads, but not in the first step. */
		if (ra)
			return stop(t, STACK_TRUNCATED);
		return stop(t, n > 1 ? STACK_COMPLETE : STACK_BAD_FRAME);
	}
	keep_slot(t, n, slot);
	t->stack.frames[n] = ra;
	t->walk.depth = n + 1;
	t->walk.hash = mix(t->walk.hash, ra);
	t->walk.pc = ra;
	t->walk.sp = sp;
	t->walk.ra_slot = RETURN_POP ? slot : sp;
	t->walk.called = 1;
	t->walk.interrupted = 0;
	return GO_ON;
}

/*
 * follow_frame_pointer takes a step where no table helps. The first word at the frame pointer is
 * the caller's frame pointer, the second the return address.
 */
static __noinline long follow_frame_pointer(struct thread *t)
{
	__u64 fp, ra = 0;
	__u8 again;

	if (!t)
		return STOP;
	again = t->walk.fp_step;
	if (!frame_pointer(t))
		return stop(t, STACK_BAD_POINTER);
	fp = t->walk.fp;
	/*
	 * By the ABI, zero marks the outermost frame. Without a step before, the register more
	 * likely holds something else.
	 */
	if (!fp)
		return stop(t, again ? STACK_COMPLETE : STACK_BAD_POINTER);
	if (fp & ODD || fp < t->walk.sp)
		return stop(t, STACK_BAD_POINTER);
	if (!read_word(t, fp + sizeof(word), &ra))
		return stop(t, STACK_UNREADABLE);
	if (!ra && !again) {
		keep_extra(t, fp + sizeof(word));
		return stop(t, STACK_BAD_POINTER);
	}
	fp_saved_at(t, fp);
	t->walk.fp_step = 1;
	t->walk.fp_used = 1;
	t->walk.sp_lost = !RETURN_POP;
	return enter_frame(t, user_code(ra), fp + 2 * sizeof(word), fp + sizeof(word));
}

struct hashing {
	struct thread *t;
	__u64 hash;
};

static long hash_frame(__u64 n, struct hashing *h)
{
	if (n >= MAX_DEPTH || n >= h->t->walk.depth)
		return STOP;
	h->hash = mix(h->hash, h->t->stack.frames[n]);
	return GO_ON;
}

/* hash_frames computes the hash of all frames again. */
static __noinline __u64 hash_frames(struct thread *t)
{
	struct hashing h = { .t = t };

	if (t)
		take_turns(MAX_DEPTH, hash_frame, &h);
	return h.hash;
}

/*
 * follow_unmapped looks for a return probe's stub, which is in no mapping of the program. Other
 * code outside of mappings has just been mapped. Whether the frame pointer means anything there,
 * the tracer knows when it gets the stack.
 */
static __noinline long follow_unmapped(struct thread *t)
{
	__u64 pc, slot;
	__u32 last;

	if (!t)
		return STOP;
	last = t->walk.depth - 1;
	slot = t->walk.ra_slot;
	pc = slot ? true_return(t->walk.pc, slot) : 0;
	t->walk.ra_slot = 0;
	if (pc && last < MAX_DEPTH) {
		t->stack.frames[last] = pc;
		t->walk.hash = hash_frames(t);
		t->walk.pc = pc;
		t->walk.uncached = 1; /* the slot is the same for all callers */
		return GO_ON;
	}
	t->walk.late = t->walk.uncached = 1;
	if (cfg_unwind != UNWIND_TABLES && follow_frame_pointer(t) == GO_ON)
		return GO_ON;
	return stop(t, STACK_UNMAPPED);
}

/*
 * leave_handler leaves a signal handler: the kernel has put the registers of the interrupted code
 * on the stack. The return address leads to the code that ends the handler, with sp at the frame
 * (see regs.h).
 */
static __always_inline long leave_handler(struct thread *t, __u64 offset)
{
	__u64 regs, pc = 0, sp = 0;
	long end;

	if (!t)
		return STOP;
	if (SP_CAN_BE_LOST && t->walk.sp_lost)
		return stop(t, STACK_NO_RULE);
	regs = t->walk.sp + offset;
	if (!read_word(t, regs + SIGNAL_PC, &pc) || !read_extra(t, regs + SIGNAL_SP, &sp))
		return stop(t, STACK_UNREADABLE);
	if (sp - t->walk.first_sp >= RAW_BYTES / 2)
		t->walk.other_sp = sp;
	end = enter_frame(t, pc, sp, regs + SIGNAL_PC);
	t->walk.ra_slot = 0;
	fp_saved_at(t, regs + SIGNAL_FP);
	t->walk.fp_step = 0;
	t->walk.sp_lost = 0;
	t->walk.called = 0;
	t->walk.interrupted = regs;
	return end;
}

static __noinline long follow_signal(struct thread *t)
{
	return leave_handler(t, SIGNAL_REGS);
}

#ifdef SIGNAL_OLD_REGS
static __noinline long follow_old_signal(struct thread *t)
{
	return leave_handler(t, SIGNAL_OLD_REGS);
}
#endif

/* unusual_cfa finds the CFA if it is not an offset from sp. It returns 0 if it cannot. */
static __noinline __u64 unusual_cfa(struct thread *t, __u64 rule)
{
	__u64 base = 0;

	if (!t)
		return 0;
	switch (RULE_KIND(rule)) {
	case RULE_FP:
		return frame_pointer(t) ? t->walk.fp + RULE_CFA(rule) : 0;
	case RULE_FP_DEREF:
		if (!frame_pointer(t) || !read_extra(t, t->walk.fp + RULE_OFFSET(rule), &base))
			return 0;
		return base + RULE_ADDEND(rule);
	case RULE_SP_DEREF:
		if (!read_extra(t, t->walk.sp + RULE_OFFSET(rule), &base))
			return 0;
		return base + RULE_ADDEND(rule);
	case RULE_PLT:
		/* slot is the offset after the push within an entry of 16 bytes, in words */
		return t->walk.sp + sizeof(word) +
		       ((t->walk.pc & 15) * sizeof(word) >= RULE_SLOT(rule) ? sizeof(word) : 0);
	case RULE_SP:
		/*
		 * sp is lost. The frame pointer points to where the caller's was saved (AAPCS64,
		 * frame records).
		 */
		return frame_pointer(t) ? t->walk.fp - RULE_SLOT(rule) : 0;
	case RULE_REG:
		if (!t->walk.interrupted ||
		    !read_extra(t, t->walk.interrupted + SIGNAL_REGISTER(RULE_REGISTER(rule)),
				&base))
			return 0;
		return base + RULE_CFA(rule);
	}
	return 0;
}

/*
 * link_register returns the return address that the innermost function still has in its register;
 * 0 if that is not known. It is known of code that a page fault interrupted.
 */
static __always_inline __u64 link_register(struct thread *t, __u64 rule)
{
#if defined(__TARGET_ARCH_arm64)
	if (t->walk.depth == 1 && RULE_RA_RULE(rule) == RULE_RA_LINK)
		return t->walk.link;
#endif
	return 0;
}

/* return_slot returns where the return address of a frame is saved; 0 if that is unknown. */
static __always_inline __u64 return_slot(struct thread *t, __u64 rule, __u64 cfa, __u64 fp_slot)
{
#if defined(__TARGET_ARCH_arm64)
	switch (RULE_RA_RULE(rule)) {
	case RULE_RA_AFTER_FP:
		if (!fp_slot)
			return 0;
		return fp_slot + sizeof(word) + (RULE_KIND(rule) == RULE_REG ? 0 : RULE_GAP(rule));
	case RULE_RA_AT_CFA:
		return cfa + RULE_SLOT(rule);
	case RULE_RA_LINK:
		/* A call has overwritten it, unless the function was interrupted. */
		return t->walk.interrupted ? t->walk.interrupted + SIGNAL_REGISTER(30) : 0;
	}
#endif
	return cfa - sizeof(word);
}

#ifdef WORD_32

/*
 * find_sp corrects sp after a frame-pointer step. Functions of 32-bit x86 that align their stack,
 * as main does, have a copy of the return address after the frame pointer. Below it, among the
 * registers that they save, is the caller's sp.
 */
static __noinline long find_sp(struct thread *t)
{
	__u64 sp, copy;

	if (!t || t->walk.fp_at != FP_SAVED)
		return 0;
	for (__u32 i = 1; i <= SAVED_REGISTERS; i++) {
		if (!read_extra(t, t->walk.fp - i * sizeof(word), &sp))
			break;
		if (sp <= t->walk.sp || sp > t->walk.sp + ALIGNED_STACK)
			continue;
		if (read_extra(t, sp - sizeof(word), &copy) && copy == t->walk.pc) {
			t->walk.sp = sp;
			t->walk.ra_slot = sp - sizeof(word);
			break;
		}
	}
	return 0;
}

#endif

/* follow_rule takes a step with a rule of the tables. */
static __always_inline long follow_rule(struct thread *t, __u64 rule)
{
	__u32 kind = RULE_KIND(rule), fp_rule = RULE_FP_RULE(rule);
	__u64 cfa, slot, fp_slot = 0, ra = 0;

#ifdef WORD_32
	if (t->walk.fp_step && kind == RULE_SP)
		find_sp(t);
#endif
	if (likely(kind == RULE_SP && !(SP_CAN_BE_LOST && t->walk.sp_lost)))
		cfa = t->walk.sp + RULE_CFA(rule);
	else if (kind == RULE_SIGNAL)
		return follow_signal(t);
#ifdef SIGNAL_OLD_REGS
	else if (kind == RULE_SIGNAL_OLD)
		return follow_old_signal(t);
#endif
	else if (kind == RULE_END)
		return stop(t, STACK_COMPLETE);
	else if (kind == RULE_UNMAPPED)
		return follow_unmapped(t);
	else if (kind == RULE_NONE && cfg_unwind != UNWIND_TABLES)
		return follow_frame_pointer(t);
	else if (kind == RULE_NONE || kind == RULE_UNSUPPORTED ||
		 (kind == RULE_SP && fp_rule != RULE_FP_AT_CFA))
		return stop(t, STACK_NO_RULE);
	else
		cfa = unusual_cfa(t, rule);
	cfa = (word)cfa; /* addends may be negative */
	ra = link_register(t, rule);
	/* Only a function that was interrupted may have nothing on the stack. */
	if (unlikely(cfa < t->walk.sp || cfa & ODD ||
		     (cfa == t->walk.sp && !t->walk.interrupted && !ra)))
		return stop(t, STACK_BAD_FRAME);
	if (fp_rule == RULE_FP_AT_CFA) {
		fp_slot = cfa + RULE_SLOT(rule);
	} else if (fp_rule == RULE_FP_AT_FP) {
		if (!frame_pointer(t))
			return stop(t, STACK_BAD_FRAME);
		fp_slot = t->walk.fp + RULE_SLOT(rule);
	}
	if (unlikely(ra)) {
		slot = cfa;
		t->walk.uncached = 1;
	} else {
		slot = return_slot(t, rule, cfa, fp_slot);
		if (unlikely(!read_word(t, slot, &ra)))
			return stop(t, STACK_UNREADABLE);
	}
	if (fp_slot)
		fp_saved_at(t, fp_slot);
	else if (fp_rule == RULE_FP_UNKNOWN)
		t->walk.fp_at = FP_UNKNOWN;
	t->walk.fp_step = 0;
	t->walk.sp_lost = 0;
	return enter_frame(t, user_code(ra), cfa, slot);
}

/* follow takes one step outwards. */
static __always_inline long follow(struct thread *t)
{
	__u64 rule = RULE_NONE;

	if (cfg_unwind != UNWIND_FRAME_POINTER)
		rule = find_rule(t, t->walk.pc - t->walk.called);
	return follow_rule(t, rule);
}

#endif
