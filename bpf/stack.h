/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User stacks: the true return address first, then its callers. The frames of a stack are sent
 * once, events contain its hash.
 */
#ifndef RTRACE_STACK_H
#define RTRACE_STACK_H

#include "emit.h"
#include "raw.h"
#include "stack_cache.h"

#define SEEN_SLOTS 65536

/*
 * Hashes whose frames the tracer already has, direct-mapped: a collision only sends frames twice.
 * A hash is entered after its record was sent.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEEN_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} seen_stacks SEC(".maps");

/* make_known sends the frames of the thread's stack unless the tracer has them. */
static __always_inline bool make_known(void *ctx, struct thread *t)
{
	__u32 slot = t->stack.hash & (SEEN_SLOTS - 1);
	__u64 *seen = bpf_map_lookup_elem(&seen_stacks, &slot);

	if (!seen || *seen == t->stack.hash)
		return true;
	t->stack.head.tid = t->tid;
	t->stack.head.kind = RECORD_STACK;
	if (!emit_stack(ctx, t, t->stack.depth)) {
		lose(LOSS_STACK);
		return false;
	}
	*seen = t->stack.hash;
	return true;
}

/* ask_helper makes the kernel walk the stack, which it does with the frame pointer. */
static __noinline void ask_helper(struct pt_regs *ctx, struct thread *t)
{
	long bytes;

	if (!t)
		return;
	bytes = bpf_get_stack(ctx, t->stack.frames, sizeof(t->stack.frames), BPF_F_USER_STACK);
	if (bytes < 0)
		bytes = 0;
	t->walk.depth = 0;
	t->walk.hash = 0;
	for (__u32 i = 0; i < MAX_DEPTH && i < cfg_depth; i++) {
		if (i >= (__u64)bytes / sizeof(__u64))
			break;
		t->walk.hash = mix(t->walk.hash, t->stack.frames[i]);
		t->walk.depth = i + 1;
	}
	t->walk.end = STACK_HELPER;
	t->walk.fp_used = 1;
}

/* find_frames unwinds the stack into the thread's scratch. */
static __always_inline void find_frames(struct pt_regs *ctx, struct thread *t, __u64 pc, __u64 fp,
					__u64 sp)
{
	count(WORK_WALK);
	start_walk(t, pc, fp, sp);
	if (cfg_unwind == UNWIND_HELPER) {
		ask_helper(ctx, t);
	} else {
		look_ahead(t);
		walk_frames(t);
	}
	finish_walk(t);
}

/*
 * send_late leaves the unwinding of a stack to the tracer if the stack leads through code whose
 * table is not there yet. It returns an ID of its own for the stack, because stacks with the same
 * beginning may differ later. 0 means that there was no space.
 */
static __noinline __u64 send_late(struct pt_regs *ctx, struct thread *t, __u64 pc, __u64 sp)
{
	struct raw_request r = { .pc = pc, .sp = sp, .purpose = RAW_LATE };

	if (!t)
		return 0;
	r.hash = mix(bpf_ktime_get_ns(), (__u64)t->tid << 32 | 1);
	return r.hash && send_raw(ctx, t, &r) ? r.hash : 0;
}

static __noinline void send_check(struct pt_regs *ctx, struct thread *t, __u64 hash, __u64 pc,
				  __u64 sp)
{
	struct raw_request r = { .hash = hash, .pc = pc, .sp = sp, .purpose = RAW_CHECK };

	if (!t)
		return;
	t->unverified = 0;
	if (!send_raw(ctx, t, &r))
		count(WORK_UNCHECKED);
}

/*
 * record_stack returns the hash of the stack whose innermost return address is pc, with sp and fp
 * after that return. It sends the frames if the tracer has not seen them.
 */
static __always_inline __u64 record_stack(struct pt_regs *ctx, struct thread *t, __u64 pc, __u64 fp,
					  __u64 sp)
{
	__u64 hash = 0;

	if (!cfg_depth)
		return 0;
	forget_window(t, sp);
	if (cfg_stack_cache)
		hash = find_stack(t, pc, fp, sp);
	if (!hash) {
		find_frames(ctx, t, pc, fp, sp);
		if (unlikely(t->walk.late) && !cfg_perf_buffer) {
			hash = send_late(ctx, t, pc, sp);
			if (hash)
				return hash;
		}
		hash = t->stack.hash;
		if (make_known(ctx, t) && cfg_stack_cache)
			keep_stack(t, pc, fp, sp);
	} else if (cfg_verify) {
		start_walk(t, pc, fp, sp);
	}
	if (cfg_verify && ++t->unverified >= cfg_verify)
		send_check(ctx, t, hash, pc, sp);
	return hash;
}

/*
 * stack_or_caller is record_stack for a call of an allocator. Without stacks it returns the return
 * address, which shows the tracer whether an operator new made the call.
 */
static __always_inline __u64 stack_or_caller(struct pt_regs *ctx, struct thread *t, __u64 pc,
					     __u64 fp, __u64 sp)
{
	return cfg_depth ? record_stack(ctx, t, pc, fp, sp) : pc;
}

#endif
