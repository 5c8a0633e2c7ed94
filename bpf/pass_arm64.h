/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sites in the middle of a function on arm64 (pass.h). Branches test a register or one of its bits
 * as well as the flags, and the return address is in the link register or was saved next to the
 * frame pointer.
 */
#ifndef RTRACE_PASS_ARM64_H
#define RTRACE_PASS_ARM64_H

#include "frame.h"

/*
 * A packed site: as on other machines, except for bits 29-33 pairs of words pushed before the
 * site, 34 a call for which the condition does not hold notes its arguments, 35-37 where the
 * caller's frame pointer and return address were saved (0: they are in their registers; n: n - 1
 * words above the stack pointer), 39 there is a condition, 40-50 pages from the start of the code,
 * 10-13 and 51-58 the condition.
 *
 * A condition has 12 bits. Bit 11 is set for a bit of a register: bits 0-4 register, 5-9 bit, 10
 * inverted. Otherwise bit 10 is set for a register that is zero: bits 0-4 register, 5 whole or
 * lower half, 6 inverted. Otherwise bits 0-3 are a condition code.
 */
#define PASS_PUSHED(s) (((s) >> 29 & 0x1f) * 2)
#define PASS_ALSO_NOTES(s) ((__u32)((s) >> 34) & 1)
#define PASS_CONDITION(s) (((__u32)((s) >> 10) & 0xf) | ((__u32)((s) >> 47) & 0xff0))
#define PASS_PLACE(s) ((s) & ~(0xffULL << 51)) /* for SITE_PAGES */

/* flags_hold reports whether the flags fulfil a condition code. */
static __always_inline bool flags_hold(struct pt_regs *ctx, __u32 code)
{
	__u64 f = CONTEXT_WORD(ctx, pstate);
	__u32 negative = f >> 31 & 1, zero = f >> 30 & 1, carry = f >> 29 & 1,
	      overflow = f >> 28 & 1, equal = negative ^ overflow ^ 1, all;

	/* By the upper three bits of the condition code; the lowest bit inverts it. */
	all = zero | carry << 1 | negative << 2 | overflow << 3 | (carry & (zero ^ 1)) << 4 |
	      equal << 5 | (equal & (zero ^ 1)) << 6;
	return (all >> (code >> 1) ^ code) & 1;
}

/* pass_holds reports whether the condition of a site holds. */
static __always_inline bool pass_holds(struct pt_regs *ctx, __u64 site)
{
	__u32 c = PASS_CONDITION(site);
	__u64 value;

	if (!PASS_CONDITIONAL(site))
		return true;
	if (!(c & 0xc00))
		return flags_hold(ctx, c & 0xf);
	value = read_reg(ctx, c & 0x1f);
	if (c & 0x800)
		return (value >> (c >> 5 & 0x1f) & 1) != (c >> 10 & 1);
	if (!(c & 0x20))
		value = (__u32)value;
	return (value == 0) != (c >> 6 & 1);
}

/*
 * keep_places copies the values of a site to the thread's window, by the numbers of their places,
 * which are registers.
 */
static __always_inline void keep_places(struct pt_regs *ctx, struct thread *t, __u64 site)
{
	word *at = t->window.words;

	at[0] = CONTEXT_WORD(ctx, regs[0]);
	at[1] = CONTEXT_WORD(ctx, regs[1]);
	at[2] = CONTEXT_WORD(ctx, regs[2]);
	at[3] = CONTEXT_WORD(ctx, regs[3]);
	at[4] = CONTEXT_WORD(ctx, regs[4]);
	at[5] = CONTEXT_WORD(ctx, regs[5]);
	at[6] = CONTEXT_WORD(ctx, regs[6]);
	at[7] = CONTEXT_WORD(ctx, regs[7]);
	at[8] = CONTEXT_WORD(ctx, regs[8]);
	at[9] = CONTEXT_WORD(ctx, regs[9]);
	at[10] = CONTEXT_WORD(ctx, regs[10]);
	at[11] = CONTEXT_WORD(ctx, regs[11]);
	at[12] = CONTEXT_WORD(ctx, regs[12]);
	at[13] = CONTEXT_WORD(ctx, regs[13]);
	at[14] = CONTEXT_WORD(ctx, regs[14]);
	at[15] = CONTEXT_WORD(ctx, regs[15]);
	at[16] = CONTEXT_WORD(ctx, regs[16]);
	at[17] = CONTEXT_WORD(ctx, regs[17]);
	at[18] = CONTEXT_WORD(ctx, regs[18]);
	at[19] = CONTEXT_WORD(ctx, regs[19]);
	at[20] = CONTEXT_WORD(ctx, regs[20]);
	at[21] = CONTEXT_WORD(ctx, regs[21]);
	at[22] = CONTEXT_WORD(ctx, regs[22]);
	at[23] = CONTEXT_WORD(ctx, regs[23]);
	at[24] = CONTEXT_WORD(ctx, regs[24]);
	at[25] = CONTEXT_WORD(ctx, regs[25]);
	at[26] = CONTEXT_WORD(ctx, regs[26]);
	at[27] = CONTEXT_WORD(ctx, regs[27]);
	at[28] = CONTEXT_WORD(ctx, regs[28]);
	at[29] = CONTEXT_WORD(ctx, regs[29]);
	at[30] = CONTEXT_WORD(ctx, regs[30]);
	at[NO_REG] = 0;
}

/* pass_block reads the block of a call whose thread has no state. */
static __always_inline __u64 pass_block(struct pt_regs *ctx, __u64 site)
{
	return read_reg(ctx, SITE_BLOCK_REG(site));
}

/*
 * pass_caller finds the return address of a call, which a return probe of somebody else may have
 * replaced, and the caller's frame pointer.
 */
static __always_inline bool pass_caller(struct pt_regs *ctx, struct thread *t, __u64 site,
					__u64 slot, __u64 *pc, __u64 *fp)
{
	__u32 saved = PASS_FRAME(site);

	*pc = CONTEXT_WORD(ctx, regs[30]);
	if (saved) {
		if (bpf_probe_read_user(t->window.words, 2 * sizeof(word),
					(void *)(REG_SP(ctx) + (saved - 1) * sizeof(word))))
			return false;
		*fp = t->window.words[0];
		*pc = t->window.words[1];
	}
	*pc = user_code(*pc);
	return true;
}

#endif
