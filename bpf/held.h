/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which files a process has open. For each file that it ever opened, the descriptors are kept
 * under which it did. Whether one of them still has the file is checked when it is needed. So no
 * way of closing can be missed.
 */
#ifndef RTRACE_HELD_H
#define RTRACE_HELD_H

#include "file.h"

#define HOLDS 8

struct held {
	__u32 fds[HOLDS]; /* descriptors of the file, ascending; 0 for none */
	__u32 sent; /* 1: the path was sent to the tracer */
};

/* Files by their inodes. The least recently looked up ones are displaced. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct held);
} held SEC(".maps");

/* The process's descriptor tables. It gets a new one when it has shared its table with another
 * process and execs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} table SEC(".maps");

static __always_inline struct files_struct *known_files(void)
{
	__u32 zero = 0;
	__u64 *files = bpf_map_lookup_elem(&table, &zero);

	return files ? (struct files_struct *)*files : NULL;
}

static __always_inline void know_files(struct files_struct *files)
{
	__u32 zero = 0;
	__u64 value = (__u64)files;

	bpf_map_update_elem(&table, &zero, &value, BPF_ANY);
}

/* still_held reports whether the process has the file open now. */
static __always_inline bool still_held(struct held *h, struct inode *inode)
{
	struct files_struct *files = known_files();
	__u32 i, fd;

#pragma unroll
	for (i = 0; i < HOLDS; i++) {
		fd = h->fds[i];
		if (fd && inode_of(file_of(files, fd - 1)) == inode)
			return true;
	}
	return false;
}

/* note_held records that the process has a file under a descriptor. */
static __always_inline void note_held(struct files_struct *files, struct inode *inode, __u32 fd)
{
	struct held *known, first = {};
	__u64 key = (__u64)inode;
	__u32 i, was, place = HOLDS;

	known = bpf_map_lookup_elem(&held, &key);
	if (!known) {
		first.fds[0] = fd + 1;
		bpf_map_update_elem(&held, &key, &first, BPF_ANY);
		return;
	}
	known->sent = 0; /* it may be another file, or have another name */
#pragma unroll
	for (i = 0; i < HOLDS; i++) {
		was = known->fds[i];
		if (was == fd + 1)
			return;
		if (place == HOLDS && (!was || inode_of(file_of(files, was - 1)) != inode))
			place = i;
	}
	/* If all places are in use, one more is not needed. */
	if (place < HOLDS)
		known->fds[place] = fd + 1;
}

/* find_held returns what is known about a file if the process has it open now. */
static __always_inline struct held *find_held(struct inode *inode)
{
	__u64 key = (__u64)inode;
	struct held *h;

	if (!inode)
		return NULL;
	h = bpf_map_lookup_elem(&held, &key);
	return h && still_held(h, inode) ? h : NULL;
}

#endif
