/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From the innermost frame to the last one, and what is recorded on the way. */
#ifndef RTRACE_UNWIND_H
#define RTRACE_UNWIND_H

#include "stride.h"

/* advance takes all usual steps that are next, and then one of any kind. */
VERIFIED_ONCE int advance(struct thread *t)
{
	if (!t)
		return STOP;
	if (HAS_STRIDE) {
		stride(t);
		stride_by_pointer(t);
	}
	return follow(t);
}

#ifdef BOUNDED

/*
 * For kernels without bpf_loop. A global function without parameters is verified once and not for
 * each turn of the loop.
 */
#define MAX_STEPS 128

__noinline int advance_thread(void)
{
	return advance(stored_thread());
}

static __always_inline void walk_frames(struct thread *t)
{
	for (int i = 0; i <= MAX_STEPS; i++)
		if (advance_thread())
			break;
}

#else

static long advance_next(__u64 index, struct thread **t)
{
	return advance(*t) ? STOP : GO_ON;
}

/* Most stacks end after this many turns, and avoid the cost of bpf_loop. */
#define FIRST_TURNS 3

static __always_inline void walk_frames(struct thread *t)
{
	for (int i = 0; i < FIRST_TURNS; i++)
		if (advance(t))
			return;
	/* In addition to the frames, the end and stubs of return probes take a step. */
	bpf_loop(cfg_depth + MAX_RETURNS, advance_next, &t, 0);
}

#endif

/* What a first copy takes beyond what the last stack took, and the least, in bytes. */
#define WINDOW_SPARE 256
#define WINDOW_FIRST 1024

/* look_ahead copies the part of the stack that the walk will reach. */
static __always_inline void look_ahead(struct thread *t)
{
	__u64 want = t->window.span + WINDOW_SPARE;

	if (want < WINDOW_FIRST)
		want = WINDOW_FIRST;
	if (t->window.length < want && t->window.length < WINDOW_BYTES)
		move_window(t, t->walk.first_sp, want);
}

/* start_walk begins at the return address pc, with the stack after the return. */
static __always_inline void start_walk(struct thread *t, __u64 pc, __u64 fp, __u64 sp)
{
	struct walk *w = &t->walk;

	w->pc = pc;
	w->sp = w->first_sp = sp;
	w->fp = fp;
	w->fp_at = FP_FIRST;
	w->ra_slot = sp - RETURN_POP;
	w->interrupted = w->other_sp = 0;
	w->hash = mix(0, pc);
	w->depth = 1;
	w->extras = 0;
	w->fars = 0;
	w->beyond = 0;
	w->end = STACK_TRUNCATED;
	w->called = 1;
	w->fp_step = w->fp_used = w->fp_needed = w->sp_lost = w->late = 0;
	w->uncached = sp & ODD;
	t->stack.frames[0] = pc;
}

/* finish_walk fills in the head of the stack record. */
static __always_inline void finish_walk(struct thread *t)
{
	struct walk *w = &t->walk;
	__u64 hash, span = w->sp - w->first_sp;

	hash = mix(w->hash, (__u64)w->depth << 16 | w->end << 8 | w->fp_used);
	t->stack.hash = hash ? hash : 1;
	t->stack.depth = w->depth;
	t->stack.end = w->end;
	t->stack.frame_pointer = w->fp_used;
	t->window.beyond = w->beyond;
	t->window.span = span < WINDOW_BYTES ? span : WINDOW_BYTES;
}

#endif
