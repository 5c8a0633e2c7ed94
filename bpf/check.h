/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --verify-sites: functions that are probed in the middle (pass.h) have the probes on entry and
 * return as well. Of one call in cfg_verify_sites, what the sites reported is compared with the
 * arguments at the entry and the result. A thread compares one call at a time.
 */
#ifndef RTRACE_CHECK_H
#define RTRACE_CHECK_H

#include "argument.h"
#include "emit.h"
#include "kernel_stack.h"
#include "site.h"

/* A call that is compared. */
struct site_check {
	__u64 slot; /* where its return address is on the stack; 0: there is no call */
	__u64 size; /* at the entry */
	__u64 reported_size, block, pc; /* of the last report */
	__u32 argument, reported_argument;
	__u16 kind, reported_kind; /* of the arguments */
	__u32 reports;
	__u32 gaps; /* value of gaps at the entry */
	__u32 turn; /* calls since the last one that was compared */
};

/* By thread ID. The tracer makes room for more than one only to compare. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct site_check);
} site_checks SEC(".maps");

static __always_inline struct site_check *site_check(void)
{
	__u32 tid = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&site_checks, &tid);
}

/* keep_report keeps what a site reports of the call at slot. */
static __always_inline void keep_report(struct pt_regs *ctx, struct call *c, __u64 slot,
					__u64 block)
{
	struct site_check *k = site_check();

	if (!k || k->slot != slot)
		return;
	k->reports++;
	k->block = block;
	k->reported_size = c->size;
	k->reported_argument = c->argument;
	k->reported_kind = c->argument_kind;
	k->pc = REG_PC(ctx);
}

/* forget_check ends the comparison of the call at slot, which does not count. */
static __always_inline void forget_check(__u64 slot)
{
	struct site_check *k = site_check();

	if (k && k->slot == slot)
		k->slot = 0;
}

/* begin_check begins to compare a call. */
static __always_inline void begin_check(struct pt_regs *ctx, __u64 site, __u64 slot)
{
	struct site_check *k = site_check();
	struct site_check blank = {};
	struct call c = {};
	__u32 tid;

	if (!k) {
		tid = bpf_get_current_pid_tgid();
		bpf_map_update_elem(&site_checks, &tid, &blank, BPF_NOEXIST);
		k = site_check();
		if (!k)
			return;
	}
	if (k->slot > slot && k->gaps == gaps)
		return; /* within a call that is compared */
	k->slot = 0;
	if (++k->turn < cfg_verify_sites)
		return;
	k->turn = 0;
	k->size = size_argument(ctx, site, slot);
	keep_argument(ctx, &c, site, slot);
	k->argument = c.argument;
	k->kind = c.argument_kind;
	k->reports = 0;
	k->block = k->reported_size = k->pc = 0;
	k->gaps = gaps;
	k->slot = slot;
}

/* report_difference sends both values, and in place of the stack the site that reported. */
static __always_inline void report_difference(void *ctx, struct thread *t, struct site_check *k,
					      __u64 result)
{
	struct move_event m = {};

	count(WORK_DIFFER);
	fill_event(&m.event, t, RECORD_SITE_DIFFERS, 0, result, k->size, k->pc);
	m.event.argument = k->reports;
	m.old = k->block;
	m.entry_time = k->reported_size;
	if (cfg_perf_buffer) {
		output(ctx, &m, sizeof(m));
	} else {
		void *ring = cpu_ring();

		if (ring)
			bpf_ringbuf_output(ring, &m, sizeof(m), BPF_RB_NO_WAKEUP);
	}
}

/* end_check compares a call that has returned. */
static __always_inline void end_check(struct pt_regs *ctx, struct thread *t, __u64 slot)
{
	struct site_check *k = site_check();
	__u64 result = REG_RET(ctx);
	bool same;

	if (!k || k->slot != slot)
		return;
	k->slot = 0;
	if (k->gaps != gaps)
		return;
	count(WORK_COMPARED);
	same = k->reports == (result ? 1 : 0);
	if (result)
		same = same && k->block == result && k->reported_size == k->size &&
		       k->reported_kind == k->kind && k->reported_argument == k->argument;
	if (!same)
		report_difference(ctx, t, k, result);
}

/* expect is where these functions begin. */
SEC("uprobe")
int expect(struct pt_regs *ctx)
{
	struct thread *t;
	__u64 site;

	keep_kernel_stack(ctx);
	count(WORK_HIT);
	t = current_thread(false);
	if (t && find_site(ctx, t, SITE_EXPECT, &site))
		begin_check(ctx, site, REG_SP(ctx) + SITE_PUSHED(site) * sizeof(word));
	return 0;
}

/* compare is where they return. */
SEC("uretprobe")
int compare(struct pt_regs *ctx)
{
	struct thread *t;

	keep_kernel_stack(ctx);
	count(WORK_RETURN);
	t = current_thread(false);
	if (t)
		end_check(ctx, t, REG_SP(ctx) - RETURN_POP);
	return 0;
}

#endif
