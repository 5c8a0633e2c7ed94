/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which site a probe has hit: the cookie of its attachment or, on kernels without cookies (before
 * 5.15), the address determines it.
 */
#ifndef RTRACE_SITE_H
#define RTRACE_SITE_H

#include "state.h"

/* Programs that look up their site. Sites of two of them can be at the same address. */
enum site_program {
	SITE_ENTER,
	SITE_GROW,
	SITE_GROWN,
	SITE_OPERATE,
	SITE_PASS,
	SITE_EXPECT,
};

/*
 * Packed sites by what is the same wherever the library is mapped. That is the address within its
 * page if no other site of the program has the same, because it is right at once after exec;
 * otherwise the distance from the code of its allocator, and which allocator that is. The tracer
 * fills it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u64);
} sites SEC(".maps");

#define SITE_KEY(place, program) ((place) << 3 | (program))
#define SITE_DISTANCE (1ULL << 63) /* in a key: it consists of the distance */
#define SITE_TEXT_SHIFT 60 /* in such a key: the number of the text */

static __always_inline __u64 *site_at(__u32 pid, __u64 pc, __u64 program)
{
	__u64 mask = cfg_page_size - 1, key = SITE_KEY(pc & mask, program), *site;
	struct process *process;

	site = bpf_map_lookup_elem(&sites, &key);
	if (site)
		return site;
	process = bpf_map_lookup_elem(&targets, &pid);
	if (!process)
		return NULL;
	key = 0; /* no site has this key */
	for (__u64 i = 0; i < MAX_TEXTS; i++) {
		struct text *t = &process->texts[i];

		if (pc - t->start < t->end - t->start)
			key = SITE_KEY(pc - (t->start & ~mask), program) | SITE_DISTANCE |
			      i << SITE_TEXT_SHIFT;
	}
	return bpf_map_lookup_elem(&sites, &key);
}

/*
 * find_site_of finds the packed site that process pid has hit. Without it nothing is known about
 * the call.
 */
static __always_inline bool find_site_of(struct pt_regs *ctx, __u32 pid, enum site_program program,
					 __u64 *site)
{
	__u64 *found;

	if (cfg_cookies) {
		*site = bpf_get_attach_cookie(ctx);
		return true;
	}
	found = site_at(pid, REG_PC(ctx), program);
	if (unlikely(!found)) {
		lose(LOSS_ARGUMENT);
		return false;
	}
	*site = *found;
	return true;
}

static __always_inline bool find_site(struct pt_regs *ctx, struct thread *t,
				      enum site_program program, __u64 *site)
{
	return find_site_of(ctx, t->pid, program, site);
}

#endif
