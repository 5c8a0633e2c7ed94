/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Raw copies of stacks, which the tracer unwinds: to check the programs (--verify-unwind), and
 * where these had no table yet.
 */
#ifndef RTRACE_RAW_H
#define RTRACE_RAW_H

#include "emit.h"
#include "window.h"

/* A raw stack is sent only to a ring with plenty of space, so that it does not displace events. */
#define RAW_SHARE 4

/* copy_pages copies pages, from the page of addr up to the first unreadable one. */
static __always_inline __u32 copy_pages(__u8 *data, __u64 addr, __u32 pages)
{
	__u32 copied = 0;

	addr &= ~(__u64)(PAGE - 1);
	for (__u32 i = 0; i < pages; i++) {
		if (bpf_probe_read_user(data + i * PAGE, PAGE, (void *)(addr + i * PAGE)))
			break;
		copied += PAGE;
	}
	return copied;
}

static __always_inline void describe(struct raw_stack *raw, int range, __u64 addr, __u32 at,
				     __u32 length)
{
	raw->start[range] = addr & ~(__u64)(PAGE - 1);
	raw->at[range] = at;
	raw->length[range] = length;
}

/* Why a raw stack is sent. */
enum raw_purpose {
	RAW_CHECK, /* to check the result of the programs */
	RAW_LATE, /* the programs had no table yet for some of its code */
	RAW_INSIDE = 8, /* added to one of them: the registers are those inside the function */
};

struct raw_request {
	__u64 hash, pc, sp;
	enum raw_purpose purpose;
};

/* bottom returns where the part of the stack begins that is needed. */
static __always_inline __u64 bottom(struct thread *t, struct raw_request *r)
{
	return t->inside ? t->inside : r->sp;
}

/*
 * send_bytes sends the registers and size bytes of stack; half of them come from the place of a
 * signal if that is far away.
 */
static __always_inline bool send_bytes(struct pt_regs *ctx, struct thread *t, struct raw_request *r,
				       __u32 size)
{
	struct raw_stack *raw = NULL;
	__u64 other = t->walk.other_sp, from = bottom(t, r);
	void *ring = cpu_ring();

	if (ring && bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) < cfg_wake_at * 2 / RAW_SHARE)
		raw = bpf_ringbuf_reserve(ring, RAW_HEAD_SIZE + size, 0);
	if (!raw)
		return false;
	raw->head.tid = t->tid;
	raw->head.kind = RECORD_RAW;
	raw->head.function = t->inside ? r->purpose | RAW_INSIDE : r->purpose;
	raw->head.argument_kind = ARGUMENT_NOTHING;
	raw->hash = r->hash;
	raw->pc = r->pc;
	raw->sp = r->sp;
	bpf_probe_read_kernel(&raw->regs, sizeof(raw->regs), ctx);
	if (other) {
		describe(raw, 0, from, 0, copy_pages(raw->data, from, size / PAGE / 2));
		describe(raw, 1, other, size / 2,
			 copy_pages(raw->data + size / 2, other, size / PAGE / 2));
	} else {
		describe(raw, 0, from, 0, copy_pages(raw->data, from, size / PAGE));
		describe(raw, 1, 0, 0, 0);
	}
	raw->head.time = bpf_ktime_get_ns();
	bpf_ringbuf_submit(raw, BPF_RB_NO_WAKEUP);
	return true;
}

/* send_raw sends what the stack was unwound from, and reports whether there was space. */
static __noinline bool send_raw(struct pt_regs *ctx, struct thread *t, struct raw_request *r)
{
	__u64 span;

	if (!t || !r)
		return false;
	/* From the start of the page, and what a cached stack had in the window. */
	span = t->walk.sp - r->sp;
	if (span < t->window.length)
		span = t->window.length;
	span += r->sp - (bottom(t, r) & ~(__u64)(PAGE - 1));
	if (t->walk.other_sp || span > RAW_BYTES / 4)
		return send_bytes(ctx, t, r, RAW_BYTES);
	if (span > RAW_BYTES / 8 || r->purpose == RAW_LATE)
		return send_bytes(ctx, t, r, RAW_BYTES / 4);
	return send_bytes(ctx, t, r, RAW_BYTES / 8);
}

#endif
