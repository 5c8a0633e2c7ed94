/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is stored about open calls: where they write, and texts that were not in memory. */
#ifndef RTRACE_CALL_MEMORY_H
#define RTRACE_CALL_MEMORY_H

#include "call_words.h"

/* An open call. */
struct out_key {
	__u64 slot;
	__u32 tid;
	__u32 reserved;
};

/*
 * Where open calls write the data to record. Old entries are displaced if there is no room: calls
 * that were left without a return leave theirs.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct out_key);
	__type(value, __u64);
} outs SEC(".maps");

/*
 * Texts of open calls that were not in memory when the calls began. The function has read them
 * when it returns, so they are in memory then.
 */
struct unread {
	__u64 from[CALL_TEXTS]; /* 0: the text was read */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct out_key);
	__type(value, struct unread);
} unreads SEC(".maps");

/* keep_out stores where a call writes. */
static __always_inline void keep_out(__u64 *words, __u32 n, __u32 tid, __u64 slot)
{
	struct out_key key = { .slot = slot, .tid = tid };
	__u64 at;

	n--;
	asm volatile("" : "+r"(n));
	if (n >= CALL_WORDS)
		return;
	at = words[n]; /* Linux 5.10 does not accept a value from a ring's record */
	bpf_map_update_elem(&outs, &key, &at, BPF_ANY);
}

/* keep_unread stores the texts of a call that could not be read. */
static __always_inline void keep_unread(struct call_entry *e, struct call_site *site, __u8 unread,
					__u32 tid, __u64 slot)
{
	struct out_key key = { .slot = slot, .tid = tid };
	struct unread u = {};

#pragma unroll
	for (int i = 0; i < CALL_TEXTS; i++) {
		__u32 n = site->text[i];

		if (!(unread >> i & 1) || n & TEXT_COUNTED)
			continue;
		n--;
		asm volatile("" : "+r"(n));
		if (n < CALL_WORDS)
			u.from[i] = e->words[n];
	}
	bpf_map_update_elem(&unreads, &key, &u, BPF_ANY);
}

/* read_out reads what a call has written. It returns 0 on success. */
static __always_inline long read_out(__u8 *to, struct call_site *site, __u32 tid, __u64 slot)
{
	struct out_key key = { .slot = slot, .tid = tid };
	__u64 *from = bpf_map_lookup_elem(&outs, &key), at, size = site->size;

	__builtin_memset(to, 0, OUT_BYTES);
	if (!from)
		return 1;
	at = *from;
	bpf_map_delete_elem(&outs, &key);
	if (site->via) {
		__u64 head = at + site->via * WORD_BYTES;

		if (read_word(&at, head) || read_word(&size, head + WORD_BYTES) || !size)
			return 1;
	}
	asm volatile("" : "+r"(size));
	if (size > OUT_BYTES)
		size = OUT_BYTES;
	return bpf_probe_read_user(to, size, (void *)at);
}

#endif
