/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that are open in a thread, and calls that allocators make themselves while one is. */
#ifndef RTRACE_NESTED_H
#define RTRACE_NESTED_H

#include "site.h"
#include "trampoline.h"

/*
 * forget_call removes the top of the open calls: it has never returned. If every return
 * instruction has a probe, this means an exception, or a longjmp from a new_handler: nothing was
 * allocated and nothing is missing.
 */
static __always_inline void forget_call(struct thread *t, __u32 top)
{
	if (top >= MAX_CALLS)
		return;
	t->depth = top;
	if (!t->calls[top].exits)
		lose(LOSS_MISSED_RETURN);
}

/* forget_at removes the innermost open call if it was at slot. */
static __always_inline void forget_at(struct thread *t, __u64 slot)
{
	__u32 top = t->depth - 1;

	if (top < MAX_CALLS && t->calls[top].slot == slot)
		forget_call(t, top);
}

/* drop_stale removes calls below slot: their frames are gone. */
VERIFIED_ONCE int drop_stale(struct thread *t, __u64 slot)
{
	if (!t)
		return 0;
	for (int i = 0; i < MAX_CALLS; i++) {
		__u32 top = t->depth - 1;

		if (top >= MAX_CALLS || t->calls[top].slot >= slot)
			break;
		forget_call(t, top);
	}
	return 0;
}

/* text_start returns the page with which the code of the site's allocator begins; pc is the site. */
static __always_inline __u64 text_start(__u64 pc, __u64 site)
{
	return (pc & ~(cfg_page_size - 1)) - SITE_PAGES(site) * cfg_page_size;
}

/*
 * place_text corrects the place of the code of an allocator that may call another one. Right
 * after exec the tracer has not set it yet, and the other allocator's site knows its own code but
 * not its caller's.
 */
static __always_inline void place_text(struct pt_regs *ctx, struct thread *t, __u64 site)
{
	struct process *process = bpf_map_lookup_elem(&targets, &t->pid);
	__u64 mask = cfg_page_size - 1, start, length;
	struct text *text;

	if (!process)
		return;
	text = &process->texts[SITE_TEXT(site)];
	start = text_start(REG_PC(ctx), site) + (text->start & mask);
	length = text->end - text->start;
	if (unlikely(text->start != start)) {
		text->start = start;
		text->end = start + length;
	}
}

/*
 * is_allocator reports whether an address is in the code of a probed allocator. Right after exec
 * the tracer has not set that place yet, but the site that was hit knows its own.
 */
VERIFIED_ONCE bool is_allocator(struct thread *t, __u64 pc, __u64 site, __u64 addr)
{
	__u64 mask = cfg_page_size - 1, start = text_start(pc, site);
	struct process *process;
	struct text *own;

	if (!t)
		return false;
	process = bpf_map_lookup_elem(&targets, &t->pid);
	if (!process)
		return false;
	own = &process->texts[SITE_TEXT(site)];
	if (addr - start < own->end - (own->start & ~mask))
		return true;
	for (int i = 0; i < MAX_TEXTS; i++) {
		struct text *text = &process->texts[i];

		if (addr - text->start < text->end - text->start)
			return true;
	}
	return false;
}

/*
 * is_own reports whether the call at slot comes from an allocator. If one of its probed functions
 * has jumped to this one, the return address is that function's caller's, or the kernel's stub:
 * 32-bit glibc's reallocarray calls realloc, which jumps to malloc.
 */
static __always_inline bool is_own(struct thread *t, __u64 pc, __u64 site, __u64 slot, __u64 caller)
{
	if (is_allocator(t, pc, site, caller))
		return true;
	caller = true_return(caller, slot);
	return caller && is_allocator(t, pc, site, caller);
}

/*
 * is_stub reports whether a function was entered by a jump from one with a return probe, which
 * has replaced the return address that both share: the kernel's stub is at the start of a page of
 * its own (xol_area in kernel/events/uprobes.c).
 */
static __always_inline bool is_stub(__u64 caller)
{
	return !(caller & (cfg_page_size - 1));
}

/*
 * is_nested reports whether the allocator itself made the call at slot, on behalf of a call that
 * is still open. A call from elsewhere while one is open comes from a signal handler and counts.
 * pc is the site that was hit.
 */
VERIFIED_ONCE bool is_nested(struct thread *t, __u64 pc, __u64 site, __u64 slot, __u64 caller)
{
	__u32 top;

	if (!t)
		return false;
	top = t->depth - 1;
	if (top >= MAX_CALLS)
		return false;
	if (t->calls[top].slot == slot) {
		/* Same frame: entered by a jump, or the open call was left by longjmp. */
		bool jumps = t->calls[top].entered == SITE_FUNCTION(site)
				     ? t->calls[top].reenters
				     : t->calls[top].tail_calls;

		if (jumps && is_stub(caller))
			return true;
		forget_call(t, top);
		return false;
	}
	return is_own(t, pc, site, slot, caller);
}

#endif
