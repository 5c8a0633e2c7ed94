/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Page faults of the process, and the areas that it maps: which stack made which page resident.
 *
 * The kernel makes some pages without a fault: it moves them (mremap), or makes them in advance
 * (MAP_POPULATE, mlock). So the area that it chooses for a mapping is recorded, too.
 */
#ifndef RTRACE_FAULT_H
#define RTRACE_FAULT_H

#include "emit.h"
#include "kernel_stack.h"
#include "stack.h"

/* Settings, fixed before the programs are loaded. */
volatile const __u32 cfg_fault_pid = 0; /* faults of other processes do not count; 0: not known */
volatile const bool cfg_task_regs = true; /* the kernel has bpf_task_pt_regs (5.15) */
volatile const __u64 cfg_kernel_stack = 16384; /* bytes of a thread's stack in the kernel */

/* The kernel wants the programs of one array to be of one type. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} no_tracepoints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} no_perf_events SEC(".maps");

/* keep_tracepoint_stack is keep_kernel_stack for programs at tracepoints. */
static __always_inline void keep_tracepoint_stack(void *ctx)
{
	if (cfg_tail_call)
		bpf_tail_call(ctx, &no_tracepoints, 0);
}

/* keep_perf_event_stack is keep_kernel_stack for programs at perf events. */
static __always_inline void keep_perf_event_stack(void *ctx)
{
	if (cfg_tail_call)
		bpf_tail_call(ctx, &no_perf_events, 0);
}

struct raw_arguments {
	__u64 args[3];
};

/* The fields of the kernel's registers, which have its width in programs of any width. */
#if defined(__TARGET_ARCH_x86)
#define KERNEL_PC rip
#define KERNEL_FP rbp
#define KERNEL_SP rsp
#define CALL_NUMBER orig_rax
#if defined(WORD_32)
#define CALL_FIRST rbx
#define CALL_SECOND rcx
#define CALL_FLAGS rsi
#define CALL_MMAP 192 /* mmap2 */
#define CALL_MREMAP 163
#else
#define CALL_FIRST rdi
#define CALL_SECOND rsi
#define CALL_FLAGS r10
#define CALL_MMAP 9
#define CALL_MREMAP 25
#endif
#else
#define KERNEL_PC pc
#define KERNEL_FP regs[29]
#define KERNEL_SP sp
#define CALL_NUMBER regs[8]
#define CALL_FIRST regs[0]
#define CALL_SECOND regs[1]
#define CALL_FLAGS regs[3]
#define CALL_MMAP 222
#define CALL_MREMAP 216
#endif

/* struct bpf_perf_event_data (include/uapi/linux/bpf_perf_event.h) */
struct counted_event {
	struct pt_regs regs;
	__u64 period;
	__u64 address;
};

/* How often counted_fault has run. The kernel's own count is higher if it left runs out. */
__u64 counted_faults = 0;

#define MAP_POPULATE 0x8000
#define PAGE_WAS_THERE 1 /* X86_PF_PROT of the processor's error code */

/* The flavor distinguishes it from the other partial definition of a task. */
struct task_struct___kernel {
	void *stack;
	__s32 pagefault_disabled;
} __attribute__((preserve_access_index));

struct vm_unmapped_area_info {
	unsigned long length;
} __attribute__((preserve_access_index));

/* is_stranger reports whether the current thread certainly belongs to another process. */
static __always_inline bool is_stranger(void)
{
	return cfg_fault_pid && bpf_get_current_pid_tgid() >> 32 != cfg_fault_pid;
}

/*
 * is_refused reports whether the kernel brings no page for faults of the current thread now. That is
 * so while a BPF program reads the memory of the process. This program must not run then: the other
 * one may be using the state of the thread.
 */
static __always_inline bool is_refused(void)
{
	struct task_struct___kernel *task = (void *)bpf_get_current_task();
	__s32 disabled = 0;

	/* The read itself counts as one. */
	return READ_KERNEL(disabled, task->pagefault_disabled) || disabled > 1;
}

/*
 * user_registers returns the registers with which the current thread entered the kernel. They are
 * at the end of its stack there.
 */
static __always_inline struct pt_regs *user_registers(void)
{
	struct task_struct___kernel *task;
	void *stack = NULL;

	if (cfg_task_regs)
		return bpf_task_pt_regs(bpf_get_current_task_btf());
	task = (void *)bpf_get_current_task();
	READ_KERNEL(stack, task->stack);
	return stack + cfg_kernel_stack - sizeof(struct pt_regs);
}

/*
 * user_stack returns the hash of the stack of the thread's program. The innermost frame is the
 * instruction that it is at, written as a return address: one more.
 */
static __always_inline __u64 user_stack(struct thread *t, struct pt_regs *regs)
{
	__u64 pc = 0, fp = 0, sp = 0;

	if (!cfg_depth)
		return 0;
	READ_KERNEL(pc, regs->KERNEL_PC);
	READ_KERNEL(fp, regs->KERNEL_FP);
	READ_KERNEL(sp, regs->KERNEL_SP);
	if (!pc || !sp)
		return 0; /* a thread that the kernel runs for the process */
#if defined(__TARGET_ARCH_arm64)
	READ_KERNEL(t->walk.link, regs->regs[30]);
#endif
	return record_stack(regs, t, (word)pc + 1, (word)fp, (word)sp);
}

/* emit_area sends that the kernel found room for a mapping. */
static __always_inline void emit_area(struct thread *t, struct move_event *area, __u64 stack)
{
	struct move_event *e;
	void *ring;

	e = reserve(&ring, sizeof(*e));
	if (unlikely(!e)) {
		lose(LOSS_RING_FULL);
		return;
	}
	e->old = area->old;
	e->entry_time = area->entry_time;
	fill_event(&e->event, t, RECORD_AREA, area->event.head.function, area->event.addr,
		   area->event.size, stack);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/*
 * describe_area fills in what a system call makes an area for, and reports whether it is a mapping.
 */
static __always_inline bool describe_area(struct move_event *area, struct pt_regs *regs)
{
	__u64 number = 0, flags = 0;

	READ_KERNEL(number, regs->CALL_NUMBER);
	if (number == CALL_MREMAP) {
		READ_KERNEL(area->old, regs->CALL_FIRST);
		READ_KERNEL(area->entry_time, regs->CALL_SECOND);
		area->old = (word)area->old;
		area->entry_time = (word)area->entry_time;
		return true;
	}
	if (number != CALL_MMAP)
		return false;
	READ_KERNEL(flags, regs->CALL_FLAGS);
	if (flags & MAP_POPULATE)
		area->event.head.function = 1;
	return true;
}

/* send_fault sends a page fault. present is set if the page was there. */
static __always_inline void send_fault(void *ctx, __u64 address, __u64 present,
				       struct pt_regs *regs)
{
	struct thread *t = current_thread(true);

	if (t)
		emit_event(ctx, t, RECORD_FAULT, 0, address, present, user_stack(t, regs));
}

/* user_fault is where the program touches a page that is not there, or not writable. */
SEC("raw_tp/page_fault_user")
int user_fault(struct raw_arguments *ctx)
{
	keep_tracepoint_stack(ctx);
	if (unlikely(!is_stranger()))
		send_fault(ctx, ctx->args[0], ctx->args[2] & PAGE_WAS_THERE,
			   (struct pt_regs *)ctx->args[1]);
	return 0;
}

/* kernel_fault is where the kernel does so in a system call, or a BPF program. */
SEC("raw_tp/page_fault_kernel")
int kernel_fault(struct raw_arguments *ctx)
{
	keep_tracepoint_stack(ctx);
	if (unlikely(!is_stranger() && !is_refused()))
		send_fault(ctx, ctx->args[0], ctx->args[2] & PAGE_WAS_THERE, user_registers());
	return 0;
}

/*
 * counted_fault is both of them, for machines whose kernel has no such tracepoints: the program at
 * the perf event that counts the page faults of a thread. Whether the page was there is not known.
 * The kernel does not count faults for which it brings no page.
 */
SEC("perf_event")
int counted_fault(struct counted_event *ctx)
{
	keep_perf_event_stack(ctx);
	__sync_fetch_and_add(&counted_faults, 1);
	if (!is_stranger())
		send_fault(ctx, ctx->address & cfg_address_mask, 0, user_registers());
	return 0;
}

/* area_found is where the kernel has chosen the addresses of a mapping. */
SEC("raw_tp/vm_unmapped_area")
int area_found(struct raw_arguments *ctx)
{
	struct vm_unmapped_area_info *info = (struct vm_unmapped_area_info *)ctx->args[1];
	struct move_event area = {};
	struct pt_regs *regs;
	struct thread *t;

	keep_tracepoint_stack(ctx);
	if (likely(is_stranger()))
		return 0;
	area.event.addr = ctx->args[0];
	if (area.event.addr >= (__u64)-MAX_ERRNO)
		return 0;
	regs = user_registers();
	if (!describe_area(&area, regs))
		return 0;
	READ_KERNEL(area.event.size, info->length);
	t = current_thread(true);
	if (t)
		emit_area(t, &area, user_stack(t, regs));
	return 0;
}

#endif
