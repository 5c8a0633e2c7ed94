/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User stacks: the true return address first, then the chain of frame
 * pointers. The frames of a stack are sent once, events carry its hash.
 */
#ifndef RTRACE_STACK_H
#define RTRACE_STACK_H

#include "emit.h"

#define SEEN_SLOTS 65536

/*
 * Hashes whose frames the tracer already has, direct-mapped: a collision only
 * sends frames twice. A hash is entered after its record got through.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEEN_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} seen_stacks SEC(".maps");

struct frame {
	__u64 next; /* frame pointer of the caller */
	__u64 ret; /* return address into the caller */
};

static __always_inline __u64 mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

/*
 * walk_frames fills the thread's scratch stack from the return address pc and
 * the frame pointer fp on and returns the number of frames.
 */
static __noinline __u32 walk_frames(struct thread *t, __u64 pc, __u64 fp, __u64 sp)
{
	__u8 end = STACK_TRUNCATED, used = 0;
	__u64 hash = mix(0, pc);
	struct frame frame;
	__u32 n = 1;

	if (!t)
		return 0;
	t->stack.frames[0] = pc;
	for (__u32 i = 1; i < MAX_DEPTH; i++) {
		if (!fp) {
			/*
			 * The ABI's mark of the outermost frame; where no step came
			 * before, the register rather holds something else.
			 */
			end = used ? STACK_COMPLETE : STACK_BAD_POINTER;
			break;
		}
		if (i >= cfg_depth)
			break;
		if (fp & 7 || fp < sp) {
			end = STACK_BAD_POINTER;
			break;
		}
		if (bpf_probe_read_user(&frame, sizeof(frame), (void *)fp)) {
			end = STACK_UNREADABLE;
			break;
		}
		if (!frame.ret) {
			end = used ? STACK_COMPLETE : STACK_BAD_POINTER;
			break;
		}
		t->stack.frames[i] = frame.ret;
		hash = mix(hash, frame.ret);
		n = i + 1;
		used = 1;
		sp = fp + sizeof(frame);
		fp = frame.next;
	}
	hash = mix(hash, (__u64)n << 16 | end << 8 | used);
	t->stack.hash = hash ? hash : 1;
	t->stack.depth = n;
	t->stack.end = end;
	t->stack.frame_pointer = used;
	return n;
}

/*
 * record_stack returns the hash of the stack whose innermost return address is
 * pc, after its frames were sent if the tracer has not seen them.
 */
static __always_inline __u64 record_stack(void *ctx, struct thread *t, __u64 pc, __u64 fp, __u64 sp)
{
	__u64 hash, *seen;
	__u32 n, slot;

	if (!cfg_depth)
		return 0;
	n = walk_frames(t, pc, fp, sp);
	hash = t->stack.hash;
	slot = hash & (SEEN_SLOTS - 1);
	seen = bpf_map_lookup_elem(&seen_stacks, &slot);
	if (!seen || *seen == hash)
		return hash;
	t->stack.head.tid = t->tid;
	t->stack.head.kind = RECORD_STACK;
	if (emit_stack(ctx, t, n))
		*seen = hash;
	else
		lose(LOSS_STACK);
	return hash;
}

#endif
