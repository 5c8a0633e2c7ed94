/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends records to the tracer: one ring per CPU, so that CPUs do not wait for each other, and no
 * wake-up, because waking costs more than the record itself. The tracer polls. One forced wake-up
 * when a ring gets half full protects against bursts.
 *
 * The time of a record is read after its place is reserved. The tracer relies on this: a record
 * that is not in the ring when the tracer looks is younger than the look.
 */
#ifndef RTRACE_EMIT_H
#define RTRACE_EMIT_H

#include "rings.h"
#include "state.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} perf_rings SEC(".maps");

#define WAKE_STEP 16384

/*
 * wake_flags wakes the tracer when the ring passes its mark. It checks one record in 32, chosen
 * by the time, because a check costs as much as a tenth of the event; a step is some 300 records.
 * A mark that passes unnoticed is not a loss: the tracer polls anyway. New libraries wake it at
 * once: their code cannot be unwound before it has read them.
 */
static __always_inline __u64 wake_flags(void *ring, __u8 kind, __u64 time)
{
	__u64 used;

	if (unlikely(kind == RECORD_MAPS))
		return BPF_RB_FORCE_WAKEUP;
	if (likely(time * 0x9e3779b97f4a7c15ULL >> 59))
		return BPF_RB_NO_WAKEUP;
	used = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
	if (used >= cfg_wake_at && used < cfg_wake_at + WAKE_STEP)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

/* reserve reserves space in the CPU's ring; NULL if there is none. */
static __always_inline void *reserve(void **ring, __u64 size)
{
	*ring = cpu_ring();
	return *ring ? bpf_ringbuf_reserve(*ring, size, 0) : NULL;
}

/* output sends a record through a perf event buffer and reports whether there was space. */
static __always_inline bool output(void *ctx, void *record, __u64 size)
{
	return !bpf_perf_event_output(ctx, &perf_rings, BPF_F_CURRENT_CPU, record, size);
}

/*
 * lose_record counts a record for which there was no space. Each call of the program has one
 * record that holds its effect, and only that one counts as an event.
 */
static __always_inline void lose_record(__u8 kind)
{
	if (kind == RECORD_MAPS)
		lose(LOSS_SIDEBAND);
	else if (kind == RECORD_MOVE_UNDONE)
		lose(LOSS_LATE);
	else if (kind == RECORD_CALL_STACK)
		lose(LOSS_STACK);
	else if (kind != RECORD_MOVE_ENTER) /* the return counts */
		lose(LOSS_RING_FULL);
}

static __always_inline void fill_event(struct event *e, struct thread *t, __u8 kind, __u16 function,
				       __u64 addr, __u64 size, __u64 stack)
{
	e->head.tid = t->tid;
	e->head.function = function;
	e->head.kind = kind;
	e->head.argument_kind = ARGUMENT_NOTHING;
	e->addr = addr;
	e->size = size;
	e->stack = stack;
	e->pid = t->pid;
	e->argument = 0;
	e->head.time = bpf_ktime_get_ns();
}

/* add_argument adds the additional argument of a call. */
static __always_inline void add_argument(struct event *e, struct call *c)
{
	if (!cfg_args)
		return;
	e->head.argument_kind = c->argument_kind;
	e->argument = c->argument;
}

/* emit_event sends a record and reports whether it was sent. */
static __always_inline bool emit_event(void *ctx, struct thread *t, __u8 kind, __u16 function,
				       __u64 addr, __u64 size, __u64 stack)
{
	struct event *e;
	void *ring;

	if (cfg_perf_buffer) {
		struct event copy;

		fill_event(&copy, t, kind, function, addr, size, stack);
		if (likely(output(ctx, &copy, sizeof(copy))))
			return true;
		lose_record(kind);
		return false;
	}
	e = reserve(&ring, sizeof(*e));
	if (unlikely(!e)) {
		lose_record(kind);
		return false;
	}
	fill_event(e, t, kind, function, addr, size, stack);
	bpf_ringbuf_submit(e, wake_flags(ring, kind, e->head.time));
	return true;
}

/* emit_alloc is emit_event for an allocation that returned. */
static __always_inline void emit_alloc(void *ctx, struct thread *t, struct call *c, __u64 addr,
				       __u64 stack)
{
	struct event *e;
	void *ring;

	if (cfg_perf_buffer) {
		struct event copy;

		fill_event(&copy, t, RECORD_ALLOC, c->function, addr, c->size, stack);
		add_argument(&copy, c);
		if (unlikely(!output(ctx, &copy, sizeof(copy))))
			lose_record(RECORD_ALLOC);
		return;
	}
	e = reserve(&ring, sizeof(*e));
	if (unlikely(!e)) {
		lose_record(RECORD_ALLOC);
		return;
	}
	fill_event(e, t, RECORD_ALLOC, c->function, addr, c->size, stack);
	add_argument(e, c);
	bpf_ringbuf_submit(e, wake_flags(ring, RECORD_ALLOC, e->head.time));
}

/* emit_move is emit_event for a realloc that returned. */
static __always_inline bool emit_move(void *ctx, struct thread *t, struct call *c, __u64 addr,
				      __u64 stack)
{
	struct move_event *e;
	void *ring;

	if (cfg_perf_buffer) {
		struct move_event copy;

		copy.old = c->block;
		copy.entry_time = c->time;
		fill_event(&copy.event, t, RECORD_MOVE, c->function, addr, c->size, stack);
		add_argument(&copy.event, c);
		if (likely(output(ctx, &copy, sizeof(copy))))
			return true;
		lose_record(RECORD_MOVE);
		return false;
	}
	e = reserve(&ring, sizeof(*e));
	if (unlikely(!e)) {
		lose_record(RECORD_MOVE);
		return false;
	}
	e->old = c->block;
	e->entry_time = c->time;
	fill_event(&e->event, t, RECORD_MOVE, c->function, addr, c->size, stack);
	add_argument(&e->event, c);
	bpf_ringbuf_submit(e, wake_flags(ring, RECORD_MOVE, e->event.head.time));
	return true;
}

/* emit_stack sends the thread's scratch stack and reports whether it was sent. */
static __always_inline bool emit_stack(void *ctx, struct thread *t, __u32 depth)
{
	void *ring = NULL;
	__u64 size;

	t->stack.head.time = bpf_ktime_get_ns();
	if (!cfg_perf_buffer)
		ring = cpu_ring();
	/* Verifiers of Linux 5.10 forget the bounds of a value that is saved over a call. */
	asm volatile("" : "+r"(depth));
	if (depth > MAX_DEPTH)
		return false;
	size = STACK_HEAD_SIZE + depth * sizeof(__u64);
	if (cfg_perf_buffer)
		return !bpf_perf_event_output(ctx, &perf_rings, BPF_F_CURRENT_CPU, &t->stack, size);
	return ring && !bpf_ringbuf_output(ring, &t->stack, size, BPF_RB_NO_WAKEUP);
}

#endif
