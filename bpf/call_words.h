/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The words of a call at its entry: registers, words of the stack, and what they point to. */
#ifndef RTRACE_CALL_WORDS_H
#define RTRACE_CALL_WORDS_H

#include "functions.h"

volatile const bool cfg_narrow = false; /* the process is a 32-bit one on x86-64 */

/* narrow returns the value of a register in a 32-bit program. */
static __always_inline __u64 narrow(__u64 value)
{
	return cfg_narrow ? (__u32)value : value;
}

#define WORD_BYTES (cfg_narrow ? 4 : 8)

/* read_word reads a word of the program's memory. It returns 0 on success. */
static __always_inline long read_word(__u64 *value, __u64 addr)
{
	__u32 half = 0;
	long failed;

	if (!cfg_narrow)
		return bpf_probe_read_user(value, sizeof(*value), (void *)addr);
	failed = bpf_probe_read_user(&half, sizeof(half), (void *)(addr & 0xffffffff));
	*value = half;
	return failed;
}

/* any_register is read_reg with the registers that read_reg leaves out. */
static __always_inline __u64 any_register(struct pt_regs *ctx, __u32 n)
{
	if (n == PLACE_SP)
		return narrow(REG_SP(ctx));
	if (n == PLACE_PC)
		return narrow(REG_PC(ctx));
#if defined(__TARGET_ARCH_arm64)
	if (n == 18)
		return CONTEXT_WORD(ctx, regs[18]);
	if (n == 29)
		return CONTEXT_WORD(ctx, regs[29]);
	if (n == 30)
		return CONTEXT_WORD(ctx, regs[30]);
#endif
	return narrow(read_reg(ctx, n));
}

#if defined(__TARGET_ARCH_arm64)

#define STACK_WORD(slot, n) ((slot) + (n)*8)
#define REGISTER_WORDS 8

/* register_word returns an argument in a register; n is a constant. */
static __always_inline __u64 register_word(struct pt_regs *ctx, int n)
{
	return ctx->regs[n];
}

static __always_inline __u64 caller_of(struct pt_regs *ctx, __u64 slot)
{
	return REG_LR(ctx);
}

#else

#define STACK_WORD(slot, n) ((slot) + (1 + (n)) * WORD_BYTES)
#define REGISTER_WORDS (cfg_narrow ? 0 : 6)

/* register_word returns an argument in a register; n is a constant. */
static __always_inline __u64 register_word(struct pt_regs *ctx, int n)
{
	return n == 0	? ctx->rdi
	       : n == 1 ? ctx->rsi
	       : n == 2 ? ctx->rdx
	       : n == 3 ? ctx->rcx
	       : n == 4 ? ctx->r8
			: ctx->r9;
}

static __always_inline __u64 caller_of(struct pt_regs *ctx, __u64 slot)
{
	__u64 caller = 0;

	if (read_word(&caller, slot))
		return 0;
	return caller;
}

#endif

/* read_text reads the text that word n, from 1, points to, and returns whether it failed. */
static __always_inline bool read_text(__u8 *to, __u64 *words, __u32 n)
{
	__u64 from;

	to[0] = 0;
	n--;
	asm volatile("" : "+r"(n)); /* keeps the check before the use */
	if (n >= CALL_WORDS)
		return true;
	from = words[n];
	return bpf_probe_read_user_str(to, TEXT_BYTES, (void *)from) < 0;
}

/* read_counted is read_text for bytes whose number is in the word after the pointer. */
static __always_inline bool read_counted(__u8 *to, __u64 *words, __u32 n)
{
	__u64 from, length;

	n--;
	asm volatile("" : "+r"(n));
	if (n >= CALL_WORDS - 1)
		return true;
	from = words[n];
	length = words[n + 1] & 0xffffffff;
	asm volatile("" : "+r"(length));
	if (length > TEXT_BYTES)
		length = TEXT_BYTES;
	return bpf_probe_read_user(to, length, (void *)from);
}

#endif
