/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Paths of files, from the kernel's directory entries, so that the file need not stay open. */
#ifndef RTRACE_PATH_H
#define RTRACE_PATH_H

#include "activity.h"
#include "file.h"

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
} __attribute__((preserve_access_index));

#define BYTE_OFFSET 0 /* the property that __builtin_preserve_field_info returns */

static __always_inline struct mount *mount_of(struct vfsmount *mnt)
{
	__u64 offset = __builtin_preserve_field_info(((struct mount *)NULL)->mnt, BYTE_OFFSET);

	return (struct mount *)((__u64)mnt - offset);
}

/* The most parts of a path that are read. If there are more, the beginning is missing. */
#define PATH_PARTS 32

/*
 * read_path writes the parts of a file's path, the last one first, and returns their length in
 * bytes. If an empty part for the root follows, the path is complete.
 */
static __always_inline __u32 read_path(__u8 *to, struct file *file)
{
	struct dentry *entry = NULL, *parent, *top;
	struct vfsmount *mnt = NULL;
	const __u8 *name;
	__u64 at, length = 0;
	__u32 i;
	long n;

	READ_KERNEL(entry, file->f_path.dentry);
	READ_KERNEL(mnt, file->f_path.mnt);
#pragma unroll
	for (i = 0; i < PATH_PARTS; i++) {
		struct mount *mount = mount_of(mnt), *above = NULL;

		parent = NULL;
		top = NULL;
		name = NULL;
		READ_KERNEL(top, mnt->mnt_root);
		READ_KERNEL(parent, entry->d_parent);
		if (entry == top) {
			READ_KERNEL(above, mount->mnt_parent);
			if (!above || above == mount)
				break;
			READ_KERNEL(entry, mount->mnt_mountpoint);
			mnt = &above->mnt;
			continue;
		}
		if (READ_KERNEL(name, entry->d_name.name))
			return length;
		if (length >= PATH_BYTES)
			return length;
		/* For verifiers that drop the bounds of what was on the stack. */
		at = length;
		asm volatile("" : "+r"(at));
		n = bpf_probe_read_kernel_str(to + (at & (PATH_BYTES - 1)), NAME_BYTES, name);
		if (n <= 0 || n > NAME_BYTES)
			return length;
		length += n;
		if (!parent || parent == entry)
			break; /* it is in no directory */
		entry = parent;
	}
	if (i == PATH_PARTS || length >= PATH_BYTES)
		return length;
	at = length;
	asm volatile("" : "+r"(at));
	to[at & (PATH_BYTES - 1)] = 0;
	return length + 1;
}

#endif
