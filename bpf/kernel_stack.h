/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Since Linux 6.13 programs of this type may get one stack per CPU, on the assumption that a
 * program does not start twice on a CPU. Programs on uprobes do: they can be preempted, and the
 * next thread's program overwrites the first one's stack. Linux 7.3 was seen to crash because of
 * that with targets of several threads.
 *
 * Programs with a tail call keep the kernel's stack, even if the call is never reached: the
 * verifier records it before it removes dead code.
 */
#ifndef RTRACE_KERNEL_STACK_H
#define RTRACE_KERNEL_STACK_H

#include "helpers.h"

volatile const bool cfg_tail_call = false; /* never set */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} no_programs SEC(".maps");

/* keep_kernel_stack must be in every program. It costs nothing. */
static __always_inline void keep_kernel_stack(void *ctx)
{
	if (cfg_tail_call)
		bpf_tail_call(ctx, &no_programs, 0);
}

#endif
