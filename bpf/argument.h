/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The arguments of a call, in registers or on the stack. */
#ifndef RTRACE_ARGUMENT_H
#define RTRACE_ARGUMENT_H

#include "state.h"

#ifdef WORD_32

/* From this number on, a place in a packed site is a word of the stack. */
#define STACK_ARGUMENT 16

/* stack_argument reads argument n, from 0, of the call whose return address is at slot. */
static __always_inline __u64 stack_argument(__u64 slot, __u32 n)
{
	__u64 value = 0;

	if (read_user(&value, (void *)(slot + (1 + n) * sizeof(word))))
		lose(LOSS_ARGUMENT);
	return value;
}

/* argument reads the argument at a place of a packed site. */
static __always_inline __u64 argument(struct pt_regs *ctx, __u32 place, __u64 slot)
{
	if (place < STACK_ARGUMENT)
		return read_reg(ctx, place);
	return stack_argument(slot, place - STACK_ARGUMENT);
}

#define CALL_ARGUMENT(ctx, slot, n) stack_argument(slot, n)

#else

static __always_inline __u64 argument(struct pt_regs *ctx, __u32 place, __u64 slot)
{
	return read_reg(ctx, place);
}

/* Where the caller of a C function puts its arguments. */
#define CALL_ARGUMENT(ctx, slot, n) REG_ARG##n(ctx)

#endif

/* size_argument returns the requested bytes of a call, at the entry of the function. */
static __always_inline __u64 size_argument(struct pt_regs *ctx, __u64 site, __u64 slot)
{
	__u64 size = argument(ctx, SITE_SIZE_REG(site), slot), count, limit;

	if (SITE_COUNT_REG(site) == NO_REG)
		return SITE_OVERFLOW_FLAG(site) && REG_OVERFLOW(ctx) ? ~0ULL : size;
	if (cfg_args && SITE_ALIGNMENT(site))
		return size;
	count = argument(ctx, SITE_COUNT_REG(site), slot);
	if (!count)
		return 0;
	limit = (word)~0ULL / count;
	/* Keeps clang from using a 128-bit multiplication, which BPF lacks. */
	asm volatile("" : "+r"(limit));
	if (size > limit)
		return ~0ULL; /* the allocator refuses it too */
	return size * count;
}

/*
 * keep_values keeps the additional argument of a call: value, or size where that is a factor and
 * value does not fit. Of a product, one factor is enough if it is not 0 and fits.
 */
static __always_inline void keep_values(struct call *c, __u64 site, __u64 size, __u64 value)
{
	if (!cfg_args)
		return;
	c->argument_kind = ARGUMENT_NOTHING;
	if (SITE_COUNT_REG(site) == NO_REG)
		return;
	if (SITE_ALIGNMENT(site)) {
		if (value >> 32)
			return;
		c->argument_kind = ARGUMENT_ALIGNMENT;
	} else if (value && !(value >> 32)) {
		c->argument_kind = ARGUMENT_COUNT;
	} else {
		if (size >> 32 || (value && !size))
			return;
		c->argument_kind = ARGUMENT_ELEMENT;
		value = size;
	}
	c->argument = value;
}

/* keep_argument keeps the additional argument of a call, at the function's entry. */
static __always_inline void keep_argument(struct pt_regs *ctx, struct call *c, __u64 site,
					  __u64 slot)
{
	if (cfg_args)
		keep_values(c, site, argument(ctx, SITE_SIZE_REG(site), slot),
			    argument(ctx, SITE_COUNT_REG(site), slot));
}

#endif
