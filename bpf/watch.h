/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs share that record what a process does besides allocating: which process that
 * is, and how their records get to the tracer.
 */
#ifndef RTRACE_WATCH_H
#define RTRACE_WATCH_H

#include "activity.h"
#include "rings.h"

/* Settings, fixed before the programs are loaded. */
volatile const __u32 cfg_pid = 0; /* the process, in the tracer's PID namespace */
volatile const bool cfg_pid_namespace = false; /* the tracer is not in the initial one */
volatile const __u64 cfg_pidns_dev = 0;
volatile const __u64 cfg_pidns_ino = 0;

/* Changed by the tracer while the programs run. */
volatile __u32 enabled = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ACTIVITY_LOSS_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} losses SEC(".maps");

static __always_inline void lose(__u32 reason)
{
	__u64 *n = bpf_map_lookup_elem(&losses, &reason);

	/* Atomic although per CPU: a sample may interrupt the others. */
	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline void *reserve(__u64 size)
{
	void *ring = cpu_ring(), *record = NULL;

	if (ring)
		record = bpf_ringbuf_reserve(ring, size, 0);
	if (!record)
		lose(ACTIVITY_RING_FULL);
	return record;
}

static __always_inline void fill(struct activity *a, __u8 kind, __u32 tid, __u64 pc)
{
	a->tid = tid;
	a->kind = kind;
	a->number = 0;
	a->abi = 0;
	a->pc = pc;
	a->result = 0;
	a->time = bpf_ktime_get_ns();
}

#endif
