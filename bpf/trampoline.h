/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Return probes, ours and other people's, replace the return address of the function that they
 * wait for. The true one is in the kernel's list of the task's pending returns
 * (include/linux/uprobes.h).
 */
#ifndef RTRACE_TRAMPOLINE_H
#define RTRACE_TRAMPOLINE_H

#include "state.h"
#include "turns.h"

/* Only the fields that are read; the loader finds their offsets in the running kernel's types. */
struct return_instance {
	struct return_instance *next;
	unsigned long orig_ret_vaddr;
	unsigned long stack;
} __attribute__((preserve_access_index));

struct uprobe_task {
	struct return_instance *return_instances;
} __attribute__((preserve_access_index));

struct task_struct {
	struct uprobe_task *utask;
} __attribute__((preserve_access_index));

/* The most probed functions that the kernel keeps pending in one task (MAX_URETPROBE_DEPTH). */
#define MAX_RETURNS 64

#define READ_KERNEL(to, from) bpf_probe_read_kernel(&(to), sizeof(to), &(from))

struct pending {
	__u64 pc, slot; /* what is looked for */
	struct return_instance *next;
	__u64 found;
};

/* check_pending checks one of the pending returns. */
static long check_pending(__u64 n, struct pending *p)
{
	struct return_instance *r = p->next;
	unsigned long stack = 0, address = 0;

	if (!r || READ_KERNEL(stack, r->stack) || READ_KERNEL(address, r->orig_ret_vaddr))
		return STOP;
	if (stack == p->slot && address != p->pc) {
		p->found = address;
		return STOP;
	}
	return READ_KERNEL(p->next, r->next) ? STOP : GO_ON;
}

/*
 * true_return returns the address that pc, found at slot, stands for, if pc is the kernel's stub;
 * else 0. If a function ended in a jump to another probed one there are two entries for the slot,
 * and the outer one has the address.
 *
 * A global function that takes no pointers is verified once on all kernels.
 */
__noinline __u64 true_return(__u64 pc, __u64 slot)
{
	struct task_struct *task = bpf_get_current_task();
	struct pending p = { .pc = pc, .slot = slot };
	struct uprobe_task *utask = NULL;

	if (READ_KERNEL(utask, task->utask) || !utask ||
	    READ_KERNEL(p.next, utask->return_instances))
		return 0;
	take_turns(MAX_RETURNS, check_pending, &p);
	return p.found;
}

#endif
