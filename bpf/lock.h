/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Locks on files, from the arguments of the system calls. */
#ifndef RTRACE_LOCK_H
#define RTRACE_LOCK_H

#include "activity.h"

struct lock {
	__u32 type, whence;
	__u64 start, length;
};

/* The values in the kernel's include/uapi/asm-generic/fcntl.h and linux/compat.h. */
enum {
	F_DUPFD = 0,
	F_SETLK = 6,
	F_SETLKW = 7,
	F_SETLK64 = 13,
	F_SETLKW64 = 14,
	F_OFD_SETLK = 37,
	F_OFD_SETLKW = 38,
	F_DUPFD_CLOEXEC = 1030,
	F_RDLCK = 0,
	F_WRLCK = 1,
	F_UNLCK = 2,
	LOCK_SH = 1,
	LOCK_EX = 2,
	LOCK_UN = 8,
};

struct lock_native {
	__u16 type, whence;
	__u32 hole;
	__s64 start, length;
};

struct lock_32 {
	__u16 type, whence;
	__s32 start, length;
};

struct lock_32_large {
	__u16 type, whence;
	__s64 start, length;
} __attribute__((packed));

#define READ_LOCK(lock, at, layout)                                     \
	({                                                              \
		layout l = {};                                          \
		long failed = bpf_probe_read_user(&l, sizeof(l), (at)); \
		(lock)->type = l.type;                                  \
		(lock)->whence = l.whence;                              \
		(lock)->start = l.start;                                \
		(lock)->length = l.length;                              \
		!failed;                                                \
	})

/* fcntl_lock reads what fcntl locks, and reports whether it locks anything. */
static __always_inline bool fcntl_lock(struct lock *lock, __u64 *args, __u32 abi)
{
	__u32 command = args[1];
	void *at = (void *)args[2];
	bool short_ones = command == F_SETLK || command == F_SETLKW;
	bool large = command == F_SETLK64 || command == F_SETLKW64;
	bool open_file = command == F_OFD_SETLK || command == F_OFD_SETLKW;

	if (abi == ABI_NATIVE)
		return (short_ones || open_file) && READ_LOCK(lock, at, struct lock_native);
	if (short_ones)
		return READ_LOCK(lock, at, struct lock_32);
	return (large || open_file) && READ_LOCK(lock, at, struct lock_32_large);
}

/* flock_lock is fcntl_lock for flock, which locks whole files. */
static __always_inline bool flock_lock(struct lock *lock, __u64 *args)
{
	if (args[1] & LOCK_UN)
		lock->type = F_UNLCK;
	else if (args[1] & LOCK_EX)
		lock->type = F_WRLCK;
	else if (args[1] & LOCK_SH)
		lock->type = F_RDLCK;
	else
		return false;
	return true;
}

#endif
