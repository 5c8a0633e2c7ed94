/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many frames at once, if they are of the usual kinds: what changes from one to the next stays in
 * registers. The step of frame.h does the same and is slower.
 */
#ifndef RTRACE_STRIDE_H
#define RTRACE_STRIDE_H

#include "frame.h"

/* The most frames that are taken at once. */
#define STRIDE 32

/*
 * Rules that are relative to sp, with the return address below the CFA and the caller's frame
 * pointer unchanged or saved.
 */
#if defined(__TARGET_ARCH_x86)
#define IS_USUAL(r) (((r)&0x6f) == RULE_SP)

/* CFA = fp + 2 words, where the first of them is the caller's frame pointer. */
#define POINTER_RULE (RULE_FP | RULE_FP_AT_CFA << 4 | (-2ULL & 0xffffff) << 16 | 2ULL << 40)
#define HAS_STRIDE (cfg_unwind <= UNWIND_TABLES)
#else
#define IS_USUAL(r) 0
#define POINTER_RULE 0ULL
#define HAS_STRIDE 0
#endif

/* After a frame-pointer step of 32-bit programs follow_rule looks for sp. */
#ifdef WORD_32
#define SP_IS_KNOWN(t) (!(t)->walk.fp_step)
#else
#define SP_IS_KNOWN(t) 1
#endif

/* can_stride reports whether the window is the first one and contains the next frame. */
static __always_inline bool can_stride(struct thread *t)
{
	return t->window.base == t->walk.first_sp && t->window.length <= WINDOW_BYTES &&
	       t->window.length >= 2 * sizeof(word) && t->walk.called && !t->walk.uncached &&
	       SP_IS_KNOWN(t);
}

/* end_stride stores where strides have led. */
static __always_inline void end_stride(struct thread *t, __u64 pc, __u64 at, __u32 n, __u64 hash)
{
	if (n == t->walk.depth)
		return;
	t->walk.pc = pc;
	t->walk.sp = t->walk.first_sp + at;
	t->walk.hash = hash;
	t->walk.depth = n;
	t->walk.ra_slot = t->walk.sp - sizeof(word);
	t->walk.interrupted = 0;
	t->walk.fp_step = 0;
}

/*
 * stride takes steps as long as they are of the most usual kind: a return address whose rule is
 * known and relative to sp, with everything that is needed in the first window. follow would take
 * the same steps; this is faster, because what changes stays in registers.
 */
VERIFIED_ONCE int stride(struct thread *t)
{
	__u64 pc, hash, epoch, at, length;
	__u32 n;

	if (!t || !can_stride(t))
		return 0;
	pc = t->walk.pc;
	hash = t->walk.hash;
	epoch = t->target.epoch;
	at = t->walk.sp - t->walk.first_sp;
	length = t->window.length;
	n = t->walk.depth;
	for (__u32 i = 0; i < STRIDE; i++) {
		__u64 tag = (pc - 1) ^ epoch, rule, slot, ra;
		volatile struct known_rule *known = known_rule_of(tag);

		/* Keeps clang from counting in pointers, which the verifier cannot bound. */
		asm volatile("" : "+r"(n));
		rule = known->rule;
		if (known->check != tag + rule * GOLDEN || !IS_USUAL(rule))
			break;
		/* The return address is in the last word below the CFA. */
		slot = at + RULE_CFA(rule) - sizeof(word);
		if (slot < at || slot >= length || n >= MAX_SLOTS || n >= cfg_depth)
			break;
		/* Verifiers do not compare two registers: see stride_by_pointer. */
		if (slot > WINDOW_BYTES - sizeof(word))
			break;
		ra = word_at(t, slot);
		if (!ra)
			break;
		t->walk.slot[n] = slot;
		t->stack.frames[n] = pc = ra;
		at = slot + sizeof(word);
		n++;
		hash = mix(hash, pc);
		if (RULE_FP_RULE(rule) == RULE_FP_AT_CFA)
			fp_saved_at(t, t->walk.first_sp + at + RULE_SLOT(rule));
	}
	end_stride(t, pc, at, n, hash);
	return 0;
}

/*
 * stride_by_pointer does the same where functions keep a frame pointer. There the rule is the
 * same everywhere except in prologues, with the caller's frame pointer in the word below the
 * return address. The slots cover both words.
 */
VERIFIED_ONCE int stride_by_pointer(struct thread *t)
{
	__u64 pc, hash, epoch, at, length, fp;
	__u32 n;

	if (!t || !can_stride(t))
		return 0;
	pc = t->walk.pc;
	if (find_rule(t, pc - 1) != POINTER_RULE || !frame_pointer(t))
		return 0;
	hash = t->walk.hash;
	epoch = t->target.epoch;
	at = t->walk.sp - t->walk.first_sp;
	length = t->window.length;
	n = t->walk.depth;
	fp = t->walk.fp - t->walk.first_sp;
	for (__u32 i = 0; i < STRIDE; i++) {
		__u64 tag = (pc - 1) ^ epoch, ra;
		volatile struct known_rule *known = known_rule_of(tag);

		asm volatile("" : "+r"(n));
		if (known->rule != POINTER_RULE || known->check != tag + POINTER_RULE * GOLDEN)
			break;
		if (fp < at || fp & ODD || fp >= length - sizeof(word) || n >= MAX_SLOTS ||
		    n >= cfg_depth)
			break;
		/* For the verifier, which does not know that length is within bounds too. */
		if (fp > WINDOW_BYTES - 2 * sizeof(word))
			break;
		ra = word_at(t, fp + sizeof(word));
		if (!ra)
			break;
		t->walk.slot[n] = (fp + sizeof(word)) | SLOT_PAIR;
		t->stack.frames[n] = pc = ra;
		at = fp + 2 * sizeof(word);
		fp = word_at(t, fp) - t->walk.first_sp;
		n++;
		hash = mix(hash, pc);
	}
	if (n == t->walk.depth)
		return 0;
	t->walk.fp = t->walk.first_sp + fp;
	t->walk.fp_at = FP_VALUE;
	end_stride(t, pc, at, n, hash);
	return 0;
}

#endif
