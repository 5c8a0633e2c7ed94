/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the kernel's own structures that are read. */
#ifndef RTRACE_TASK_H
#define RTRACE_TASK_H

#include "helpers.h"

/* Only the fields that are read; the loader finds their offsets in the running kernel's types. */
struct thread_info {
	unsigned long flags;
	__u32 status;
} __attribute__((preserve_access_index));

struct task_struct {
	struct thread_info thread_info;
	__s32 pid;
	__s32 tgid;
	__u64 start_time;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct files_struct *files;
} __attribute__((preserve_access_index));

struct ns_common {
	__u32 inum;
} __attribute__((preserve_access_index));

struct pid_namespace {
	struct ns_common ns;
} __attribute__((preserve_access_index));

struct upid {
	__s32 nr;
	struct pid_namespace *ns;
} __attribute__((preserve_access_index));

/* The last of its IDs is the one in its own namespace. */
struct pid {
	__u32 level;
	struct upid numbers[1];
} __attribute__((preserve_access_index));

#define READ_KERNEL(to, from) bpf_probe_read_kernel(&(to), sizeof(to), &(from))

#endif
