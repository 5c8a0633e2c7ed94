/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The word of the traced programs: the size of a register, an address and a slot of their stacks.
 * With -DWORD_32 the programs serve 32-bit programs on a 64-bit kernel, whose own structures keep
 * their size.
 */
#ifndef RTRACE_WORD_H
#define RTRACE_WORD_H

#include "helpers.h"

#ifdef WORD_32
typedef __u32 word;
typedef __s32 sword;
#else
typedef __u64 word;
typedef __s64 sword;
#endif

/* The bits that no address of a word has. */
#define ODD (sizeof(word) - 1)

/* read_user reads a word of the program's memory. It returns 0 on success. */
static __always_inline long read_user(__u64 *value, void *addr)
{
#ifdef WORD_32
	word w = 0;
	long failed = bpf_probe_read_user(&w, sizeof(w), addr);

	*value = w;
	return failed;
#else
	return bpf_probe_read_user(value, sizeof(*value), addr);
#endif
}

#endif
