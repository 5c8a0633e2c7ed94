/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user registers at a probe. Their layout is ABI (asm/ptrace.h), so no kernel header is
 * needed. Registers are numbered as the machine encodes them; tracer/site uses the same numbers.
 */
#ifndef RTRACE_REGS_H
#define RTRACE_REGS_H

#include "word.h"

#define NO_REG 31

#define MAX_ERRNO 4095 /* a system call returns an error as its negative, up to this */

/*
 * The context may be read only at constant offsets from its start. The compiler merges plain C
 * loads after a choice into one load at a computed address, which the verifier refuses; it does
 * not change assembly.
 */
#define CONTEXT_WORD(ctx, field)                                                          \
	({                                                                                \
		__u64 word;                                                               \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                     \
			     : "=r"(word)                                                 \
			     : "r"(ctx), "i"(__builtin_offsetof(struct pt_regs, field))); \
		word;                                                                     \
	})

#if defined(__TARGET_ARCH_x86)

struct pt_regs {
	__u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
	__u64 rax, rcx, rdx, rsi, rdi, orig_rax;
	__u64 rip, cs, eflags, rsp, ss;
};

#if defined(WORD_32)
#include "regs_i386.h"
#else

#define REG_PC(r) ((r)->rip)
#define REG_SP(r) ((r)->rsp)
#define REG_FP(r) ((r)->rbp)
#define REG_RET(r) ((r)->rax)
#define REG_ARG0(r) ((r)->rdi)
#define REG_ARG1(r) ((r)->rsi)
#define REG_ARG2(r) ((r)->rdx)
#define REG_ARG3(r) ((r)->rcx)
#define REG_OVERFLOW(r) ((r)->eflags >> 11 & 1)

/* A call pushes its return address: after the return sp is one word higher. */
#define RETURN_POP 8

/*
 * The signal frame (arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h): the ucontext follows
 * the return address. Its registers follow its head of 40 bytes: r8 to r15, rdi, rsi, rbp, rbx,
 * rdx, rax, rcx, rsp, rip.
 */
#define SIGNAL_REGS 40
#define SIGNAL_FP (10 * 8)
#define SIGNAL_SP (15 * 8)
#define SIGNAL_PC (16 * 8)

/* Offset of the register with DWARF number n: a nibble each, from rax on. */
#define SIGNAL_REGISTER(n) ((0x76543210fa89becdULL >> ((n)*4 & 63) & 15) * 8)

#define SP_CAN_BE_LOST 0
#define SIGNED_RETURNS 0

static __always_inline __u64 read_reg(struct pt_regs *r, __u32 n)
{
	if (n == 7)
		return CONTEXT_WORD(r, rdi);
	if (n == 6)
		return CONTEXT_WORD(r, rsi);
	if (n == 2)
		return CONTEXT_WORD(r, rdx);
	if (n == 0)
		return CONTEXT_WORD(r, rax);
	if (n == 1)
		return CONTEXT_WORD(r, rcx);
	if (n == 3)
		return CONTEXT_WORD(r, rbx);
	if (n == 5)
		return CONTEXT_WORD(r, rbp);
	if (n == 8)
		return CONTEXT_WORD(r, r8);
	if (n == 9)
		return CONTEXT_WORD(r, r9);
	if (n == 10)
		return CONTEXT_WORD(r, r10);
	if (n == 11)
		return CONTEXT_WORD(r, r11);
	if (n == 12)
		return CONTEXT_WORD(r, r12);
	if (n == 13)
		return CONTEXT_WORD(r, r13);
	if (n == 14)
		return CONTEXT_WORD(r, r14);
	if (n == 15)
		return CONTEXT_WORD(r, r15);
	return 0;
}

#endif

#elif defined(__TARGET_ARCH_arm64)

struct pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};

#define REG_PC(r) ((r)->pc)
#define REG_SP(r) ((r)->sp)
#define REG_FP(r) ((r)->regs[29])
#define REG_RET(r) ((r)->regs[0])
#define REG_ARG0(r) ((r)->regs[0])
#define REG_ARG1(r) ((r)->regs[1])
#define REG_ARG2(r) ((r)->regs[2])
#define REG_ARG3(r) ((r)->regs[3])
#define REG_LR(r) ((r)->regs[30])
#define REG_OVERFLOW(r) ((r)->pstate >> 28 & 1)

/* The return address is in a register: sp is the same before and after a call. */
#define RETURN_POP 0

/*
 * The signal frame (arch/arm64/kernel/signal.c, uapi/asm/sigcontext.h): the ucontext follows the
 * siginfo of 128 bytes, with x0 to x30, sp and pc from its byte 184 on.
 */
#define SIGNAL_REGS 312
#define SIGNAL_FP (29 * 8)
#define SIGNAL_SP (31 * 8)
#define SIGNAL_PC (32 * 8)
#define SIGNAL_REGISTER(n) ((__u64)(n)*8)

/* A frame record is not at the frame's end: after a frame-pointer step sp is unknown. */
#define SP_CAN_BE_LOST 1

/* Pointer authentication: a signature is in the bits that addresses do not have. */
#define SIGNED_RETURNS 1

/* Arguments are in x0-x7; copies of them can be anywhere below x29. */
#define ONE_REG(i)                                       \
	do {                                             \
		if (n == i)                              \
			return CONTEXT_WORD(r, regs[i]); \
	} while (0)

static __always_inline __u64 read_reg(struct pt_regs *r, __u32 n)
{
	ONE_REG(0);
	ONE_REG(1);
	ONE_REG(2);
	ONE_REG(3);
	ONE_REG(4);
	ONE_REG(5);
	ONE_REG(6);
	ONE_REG(7);
	ONE_REG(8);
	ONE_REG(9);
	ONE_REG(10);
	ONE_REG(11);
	ONE_REG(12);
	ONE_REG(13);
	ONE_REG(14);
	ONE_REG(15);
	ONE_REG(16);
	ONE_REG(17);
	ONE_REG(19);
	ONE_REG(20);
	ONE_REG(21);
	ONE_REG(22);
	ONE_REG(23);
	ONE_REG(24);
	ONE_REG(25);
	ONE_REG(26);
	ONE_REG(27);
	ONE_REG(28);
	return 0;
}

#else
#error "no register layout for this architecture"
#endif

#endif
