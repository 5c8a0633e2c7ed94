/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files of descriptors. Everything is read without locks: a descriptor that another thread is
 * closing may appear as another file, or as none.
 */
#ifndef RTRACE_FILE_H
#define RTRACE_FILE_H

#include "task.h"

#define S_IFMT 0170000
#define S_IFREG 0100000

struct inode {
	__u16 i_mode;
} __attribute__((preserve_access_index));

struct qstr {
	const __u8 *name;
} __attribute__((preserve_access_index));

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
} __attribute__((preserve_access_index));

struct vfsmount {
	struct dentry *mnt_root;
} __attribute__((preserve_access_index));

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} __attribute__((preserve_access_index));

struct file {
	struct path f_path;
	struct inode *f_inode;
} __attribute__((preserve_access_index));

struct fdtable {
	__u32 max_fds;
	struct file **fd;
} __attribute__((preserve_access_index));

struct files_struct {
	struct fdtable *fdt;
} __attribute__((preserve_access_index));

/* current_files returns the descriptors of the current task. */
static __always_inline struct files_struct *current_files(void)
{
	struct task_struct *task = bpf_get_current_task();
	struct files_struct *files = NULL;

	READ_KERNEL(files, task->files);
	return files;
}

/* file_of returns the file of a descriptor, NULL if there is none. */
static __always_inline struct file *file_of(struct files_struct *files, __u32 fd)
{
	struct fdtable *table = NULL;
	struct file **all = NULL, *file = NULL;
	__u32 size = 0;

	if (!files || READ_KERNEL(table, files->fdt) || READ_KERNEL(size, table->max_fds) ||
	    fd >= size || READ_KERNEL(all, table->fd))
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), all + fd);
	return file;
}

static __always_inline struct inode *inode_of(struct file *file)
{
	struct inode *inode = NULL;

	if (file)
		READ_KERNEL(inode, file->f_inode);
	return inode;
}

static __always_inline bool is_regular(struct inode *inode)
{
	__u16 mode = 0;

	READ_KERNEL(mode, inode->i_mode);
	return (mode & S_IFMT) == S_IFREG;
}

#endif
