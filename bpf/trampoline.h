/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Return probes, ours and other people's, replace the return address of the
 * function that they wait for. The true one is in the kernel's list of the
 * task's pending returns (include/linux/uprobes.h).
 */
#ifndef RTRACE_TRAMPOLINE_H
#define RTRACE_TRAMPOLINE_H

#include "state.h"

/* Only what is read; the loader finds the places in the running kernel's types. */
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

/* As many probed functions the kernel lets wait in one task (MAX_URETPROBE_DEPTH). */
#define MAX_RETURNS 64

#define READ_KERNEL(to, from) bpf_probe_read_kernel(&(to), sizeof(to), &(from))

/*
 * true_return returns the address that belongs behind pc, which was found at
 * slot, if pc is the kernel's stub; else 0. Where a function ended in a jump to
 * another probed one there are two entries for the slot, the outer one of them
 * with the address.
 */
static __noinline __u64 true_return(__u64 pc, __u64 slot)
{
	struct task_struct *task = bpf_get_current_task();
	struct uprobe_task *utask = NULL;
	struct return_instance *r = NULL;

	if (READ_KERNEL(utask, task->utask) || !utask || READ_KERNEL(r, utask->return_instances))
		return 0;
	for (int i = 0; i < MAX_RETURNS && r; i++) {
		unsigned long stack = 0, address = 0;

		if (READ_KERNEL(stack, r->stack) || READ_KERNEL(address, r->orig_ret_vaddr))
			return 0;
		if (stack == slot && address != pc)
			return address;
		if (READ_KERNEL(r, r->next))
			return 0;
	}
	return 0;
}

#endif
