/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Measures the length of a text that an argument points to, if its bytes are not recorded. */
#ifndef RTRACE_MEASURE_H
#define RTRACE_MEASURE_H

#include "call_words.h"

#define MEASURE_CHUNK 4096
#define MEASURE_CHUNKS 256
#define MEASURE_WORDS 16 /* of a text of wide characters, read at once */
#define MEASURE_WIDE_CHUNKS 128

volatile const bool cfg_measures = false; /* some sites measure texts */

/*
 * Data is read into this map and not used: only its length counts. So it does no harm if another
 * program interrupts this one and writes here as well.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8[MEASURE_CHUNK]);
} unseen SEC(".maps");

/* text_length returns the number of bytes before the NUL. */
static __always_inline __u64 text_length(__u64 at)
{
	__u64 length = 0;
	__u32 zero = 0;
	void *to = bpf_map_lookup_elem(&unseen, &zero);

	if (!to)
		return NOT_MEASURED;
	for (int i = 0; i < MEASURE_CHUNKS; i++) {
		long n = bpf_probe_read_user_str(to, MEASURE_CHUNK, (void *)(at + length));

		if (n < 0)
			return NOT_MEASURED;
		if (n) /* kernels before 6.13 or so do not count the NUL of an empty text */
			length += n - 1;
		if (n < MEASURE_CHUNK)
			return length;
	}
	return NOT_MEASURED;
}

/*
 * wide_length returns the number of characters of four bytes before the terminating 0. It reads
 * up to the ends of cache lines, so never beyond the last page.
 */
static __always_inline __u64 wide_length(__u64 at)
{
	__u32 words[MEASURE_WORDS];
	__u64 length = 0;

	if (at & 3)
		return NOT_MEASURED;
	for (int i = 0; i < MEASURE_WIDE_CHUNKS; i++) {
		__u32 n = MEASURE_WORDS - (at >> 2 & (MEASURE_WORDS - 1));

		__builtin_memset(words, 0xff, sizeof(words));
		asm volatile("" : "+r"(n)); /* keeps the check before the use */
		if (n > MEASURE_WORDS || bpf_probe_read_user(words, n * 4, (void *)at))
			return NOT_MEASURED;
#pragma unroll
		for (int j = 0; j < MEASURE_WORDS; j++)
			if (!words[j])
				return length + j;
		length += n;
		at += n * 4;
	}
	return NOT_MEASURED;
}

/* measure_word adds the length of the text that an argument points to. */
static __always_inline void measure_word(struct call_entry *e, struct call_site *site)
{
	__u32 n = (site->measure & ~MEASURE_WIDE) - 1;
	__u64 at;

	asm volatile("" : "+r"(n));
	if (n >= CALL_WORDS)
		return;
	at = e->words[n];
	e->words[WORD_MEASURED] = site->measure & MEASURE_WIDE ? wide_length(at) : text_length(at);
}

#endif
