/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * 32-bit programs on an x86-64 kernel: their registers are the low halves of the kernel's, their
 * arguments are on the stack. Included by regs.h.
 */
#ifndef RTRACE_REGS_I386_H
#define RTRACE_REGS_I386_H

#define REG_PC(r) ((word)(r)->rip)
#define REG_SP(r) ((word)(r)->rsp)
#define REG_FP(r) ((word)(r)->rbp)
#define REG_RET(r) ((word)(r)->rax)
#define REG_OVERFLOW(r) ((r)->eflags >> 11 & 1)

#define RETURN_POP 4

/*
 * The signal frames (arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h): at the end of a
 * handler sp is past the return address, at the number of the signal. Then follow, for handlers
 * with siginfo, two pointers, the siginfo of 128 bytes and the ucontext, whose registers follow
 * its head of 20 bytes; for others the registers. These are, after 16 bytes of segments: edi,
 * esi, ebp, esp, ebx, edx, ecx, eax, two words, eip.
 */
#define SIGNAL_REGS 160
#define SIGNAL_OLD_REGS 4
#define SIGNAL_FP 24
#define SIGNAL_SP 28
#define SIGNAL_PC 56

/* Offset of the register with DWARF number n, which is also the machine's. */
#define SIGNAL_REGISTER(n) ((__u64)(11 - ((n)&7)) * 4)

#define SP_CAN_BE_LOST 0
#define SIGNED_RETURNS 0

/* The registers that functions which align their stack save before the caller's sp, and that sp. */
#define SAVED_REGISTERS 4
#define ALIGNED_STACK 16

static __always_inline word read_reg(struct pt_regs *r, __u32 n)
{
	if (n == 0)
		return CONTEXT_WORD(r, rax);
	if (n == 1)
		return CONTEXT_WORD(r, rcx);
	if (n == 2)
		return CONTEXT_WORD(r, rdx);
	if (n == 3)
		return CONTEXT_WORD(r, rbx);
	if (n == 5)
		return CONTEXT_WORD(r, rbp);
	if (n == 6)
		return CONTEXT_WORD(r, rsi);
	if (n == 7)
		return CONTEXT_WORD(r, rdi);
	return 0;
}

#endif
