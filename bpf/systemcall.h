/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* System calls at raw tracepoints: the ABI of their numbers, and their arguments. */
#ifndef RTRACE_SYSTEMCALL_H
#define RTRACE_SYSTEMCALL_H

#include "activity.h"
#include "task.h"

struct bpf_raw_tracepoint_args {
	__u64 args[4];
};

#if defined(__TARGET_ARCH_x86)

#define TS_COMPAT 2 /* arch/x86/include/asm/thread_info.h: in a system call of 32 bits */

static __always_inline __u32 abi_of(void)
{
	struct task_struct *task = bpf_get_current_task();
	__u32 status = 0;

	READ_KERNEL(status, task->thread_info.status);
	return status & TS_COMPAT ? ABI_32 : ABI_NATIVE;
}

static __always_inline __u32 any_abi_of(void)
{
	return abi_of();
}

static __always_inline __u64 number_of(struct pt_regs *regs, void *kernel)
{
	return regs->orig_rax;
}

static __always_inline void arguments(__u64 *args, struct pt_regs *r, __u32 abi)
{
	bool narrow = abi == ABI_32;

	args[0] = narrow ? (__u32)r->rbx : r->rdi;
	args[1] = narrow ? (__u32)r->rcx : r->rsi;
	args[2] = narrow ? (__u32)r->rdx : r->rdx;
	args[3] = narrow ? (__u32)r->rsi : r->r10;
	args[4] = narrow ? (__u32)r->rdi : r->r8;
	args[5] = narrow ? (__u32)r->rbp : r->r9;
}

#elif defined(__TARGET_ARCH_arm64)

#define TIF_32BIT 22 /* arch/arm64/include/asm/thread_info.h: a 32-bit program */

/* The rest of the registers is not ABI. */
struct pt_regs___kernel {
	__s32 syscallno;
} __attribute__((preserve_access_index));

static __always_inline __u32 abi_of(void)
{
	return ABI_NATIVE; /* 32-bit programs of this machine are not traced */
}

/* any_abi_of is abi_of for any program; ABI_COUNT means an unknown ABI. */
static __always_inline __u32 any_abi_of(void)
{
	struct task_struct *task = bpf_get_current_task();
	unsigned long flags = 0;

	READ_KERNEL(flags, task->thread_info.flags);
	return flags >> TIF_32BIT & 1 ? ABI_COUNT : ABI_NATIVE;
}

static __always_inline __u64 number_of(struct pt_regs *regs, void *kernel)
{
	struct pt_regs___kernel *r = kernel;
	__s32 number = -1;

	READ_KERNEL(number, r->syscallno);
	return (__u64)number;
}

static __always_inline void arguments(__u64 *args, struct pt_regs *r, __u32 abi)
{
	args[0] = r->regs[0];
	args[1] = r->regs[1];
	args[2] = r->regs[2];
	args[3] = r->regs[3];
	args[4] = r->regs[4];
	args[5] = r->regs[5];
}

#endif

#endif
