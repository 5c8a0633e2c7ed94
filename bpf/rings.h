/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One ring buffer per CPU, which the tracer makes and polls. */
#ifndef RTRACE_RINGS_H
#define RTRACE_RINGS_H

#include "helpers.h"

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/* The index is the CPU. A CPU that comes online later has no ring; its events are counted as
 * lost. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

static __always_inline void *cpu_ring(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&rings, &cpu);
}

#endif
