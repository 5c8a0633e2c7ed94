/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwind tables: for every address of code, the rule that leads to the caller. The tracer makes
 * them from .eh_frame (internal/unwind) and keeps them up to date. Changes are swapped in as a
 * whole: a map in a slot of an outer map is complete before it is put there.
 */
#ifndef RTRACE_TABLES_H
#define RTRACE_TABLES_H

#include "state.h"

/*
 * A rule, packed by internal/unwind: bits 0-3 kind, 4-6 the caller's frame pointer, 7-8 the
 * return address, 9-13 a register or a gap, 16-39 slot and 40-63 CFA. Gap, slot and CFA are
 * signed and in words.
 */
enum rule_kind {
	RULE_NONE, /* no rule: code that was not compiled with tables, or made at run time */
	RULE_SP, /* CFA = sp + cfa */
	RULE_FP, /* CFA = fp + cfa */
	RULE_SP_DEREF, /* CFA = *(sp + offset) + addend */
	RULE_FP_DEREF,
	RULE_PLT, /* CFA = sp + 1 word, or + 2 after the push of a PLT entry */
	RULE_SIGNAL, /* the registers are in the kernel's signal frame at sp */
	RULE_END, /* the outermost frame of a thread */
	RULE_REG, /* CFA = register + cfa */
	RULE_UNSUPPORTED,
	RULE_SIGNAL_OLD, /* the same for handlers without siginfo, of 32-bit programs */
	RULE_UNMAPPED = 15, /* not in tables: no known mapping contains the address */
};

enum rule_fp {
	RULE_FP_SAME,
	RULE_FP_AT_CFA, /* saved at CFA + slot */
	RULE_FP_AT_FP, /* saved at fp + slot */
	RULE_FP_UNKNOWN,
};

enum rule_ra {
	RULE_RA_BELOW_CFA,
	RULE_RA_AFTER_FP, /* after the saved frame pointer, or a gap farther */
	RULE_RA_AT_CFA, /* at CFA + slot */
	RULE_RA_LINK, /* in the link register */
};

#define RULE_KIND(r) ((__u32)(r)&0xf)
#define RULE_FP_RULE(r) ((__u32)(r) >> 4 & 7)
#define RULE_RA_RULE(r) ((__u32)(r) >> 7 & 3)
#define RULE_REGISTER(r) ((__u32)(r) >> 9 & 0x1f)
#define RULE_GAP(r) ((__u64)((__s64)((r) << 50) >> 59) * sizeof(word)) /* not for RULE_REG */
#define RULE_SLOT(r) ((__u64)((__s64)((r) << 24) >> 40) * sizeof(word))
#define RULE_CFA(r) ((__u64)((__s64)(r) >> 40) * sizeof(word))
#define RULE_OFFSET(r) ((__u64)((__s64)((r) << 12) >> 52) * sizeof(word))
#define RULE_ADDEND(r) ((__u64)((__s64)(r) >> 52) * sizeof(word))

/* From pc, relative to the start of the table, up to the next row. */
struct row {
	__u32 pc;
	__u32 rule; /* index into rules */
};

struct table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct row);
};

/* One table per file, whichever processes map it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__array(values, struct table);
} tables SEC(".maps");

/* The distinct rules of all tables. The tracer adds them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u64);
} rules SEC(".maps");

/* An executable mapping of a process. */
struct mapping {
	__u64 start, end;
	__u64 origin; /* address that the rows are relative to */
	__u32 table; /* slot in tables */
	__u32 rows; /* 0 for code without a table */
};

struct space {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mapping);
};

/*
 * The mappings of a process, by address. The first element is not a mapping: its rows is the
 * number of mappings that follow. So they are swapped together with their number.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 256);
	__type(key, __u32);
	__array(values, struct space);
} spaces SEC(".maps");

/*
 * Rules that were looked up recently, direct-mapped by address. CPUs share it without a lock:
 * check matches only its own rule, so a torn entry is invalid.
 */
struct known_rule {
	__u64 check;
	__u64 rule;
};

#define KNOWN_RULES 65536

/* A variable and not a map of entries: it needs no call to find an entry, and no check of the
 * result. */
struct known_rule known_rules[KNOWN_RULES];

#define GOLDEN 0x9e3779b97f4a7c15ULL

/* Steps of a binary search over this many elements. */
#define MAPPING_STEPS 17
#define ROW_STEPS 23

/* find_mapping returns the mapping that contains pc, or NULL. */
static __noinline struct mapping *find_mapping(struct thread *t, __u64 pc)
{
	__u32 at = 0, slot, last;
	struct mapping *m;
	void *space;

	if (!t)
		return NULL;
	slot = t->target.space;
	space = bpf_map_lookup_elem(&spaces, &slot);
	if (!space)
		return NULL;
	m = bpf_map_lookup_elem(space, &at);
	if (!m)
		return NULL;
	last = m->rows;
	for (int bit = MAPPING_STEPS - 1; bit >= 0; bit--) {
		__u32 next = at + (1U << bit);

		if (next > last)
			continue;
		m = bpf_map_lookup_elem(space, &next);
		if (m && m->start <= pc)
			at = next;
	}
	m = bpf_map_lookup_elem(space, &at);
	return m && pc >= m->start && pc < m->end ? m : NULL;
}

/* find_row returns the number of the rule that applies at offset pc of a table. */
__noinline __u32 find_row(__u32 slot, __u32 n, __u32 pc)
{
	void *table = bpf_map_lookup_elem(&tables, &slot);
	struct row *row;
	__u32 at = 0;

	if (!table)
		return 0;
	for (int bit = ROW_STEPS - 1; bit >= 0; bit--) {
		__u32 next = at + (1U << bit);

		if (next >= n)
			continue;
		row = bpf_map_lookup_elem(table, &next);
		if (row && row->pc <= pc)
			at = next;
	}
	row = bpf_map_lookup_elem(table, &at);
	return row && row->pc <= pc ? row->rule : 0;
}

VERIFIED_ONCE __u64 search_rule(struct thread *t, __u64 pc)
{
	struct mapping *m = find_mapping(t, pc);
	__u64 offset, *rule;
	__u32 number;

	count(WORK_SEARCH);
	if (!m)
		return RULE_UNMAPPED;
	offset = pc - m->origin;
	if (!m->rows || offset >> 32)
		return RULE_NONE;
	number = find_row(m->table, m->rows, offset);
	rule = bpf_map_lookup_elem(&rules, &number);
	return rule ? *rule : RULE_NONE;
}

/* rule_tag distinguishes addresses of all processes and at all times. */
static __always_inline __u64 rule_tag(struct thread *t, __u64 pc)
{
	return pc ^ t->target.epoch;
}

/*
 * known_rule_of returns the place of a rule. The next frame depends on it, so the place is found
 * with the fastest of hashes.
 */
static __always_inline volatile struct known_rule *known_rule_of(__u64 tag)
{
	return &known_rules[(tag ^ tag >> 16) % KNOWN_RULES];
}

/* find_rule returns the rule that applies at pc. */
static __always_inline __u64 find_rule(struct thread *t, __u64 pc)
{
	__u64 tag = rule_tag(t, pc), rule;
	volatile struct known_rule *known = known_rule_of(tag);

	rule = known->rule;
	if (likely(known->check == tag + rule * GOLDEN))
		return rule;
	rule = search_rule(t, pc);
	known->rule = rule;
	known->check = tag + rule * GOLDEN;
	return rule;
}

#endif
