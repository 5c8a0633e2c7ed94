/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs of activity.bpf.c and package tracer/activity share. Fixed widths, no
 * padding; tracer/activity compares the layout with the object.
 */
#ifndef RTRACE_ACTIVITY_H
#define RTRACE_ACTIVITY_H

#include "helpers.h"
#include "regs.h"

enum activity_kind {
	ACTIVITY_SAMPLE = 1, /* struct activity: a thread was at pc */
	ACTIVITY_OFF, /* struct activity: it leaves the processor */
	ACTIVITY_ON, /* struct activity: it runs again */
	ACTIVITY_CALL, /* struct activity_call: a system call begins */
	ACTIVITY_RETURN, /* struct activity: it has ended with result */
	ACTIVITY_FILE_USE, /* struct activity_file: another process uses a file */
	ACTIVITY_FILE_DONE, /* struct activity: the use has ended, with result; pc is that process */
};

struct activity {
	__u64 time; /* ns of CLOCK_MONOTONIC, read after the record was reserved */
	__u32 tid;
	__u16 number; /* of the system call */
	__u8 kind;
	__u8 abi; /* of number: enum activity_abi */
	__u64 pc; /* program counter of the program, 0 if unknown */
	__u64 result; /* for a call that begins: a bit for each text that could not be read */
};

enum activity_abi {
	ABI_NATIVE,
	ABI_32, /* system calls of 32-bit programs */
	ABI_COUNT,
};

#define CALL_ARGUMENTS 6
#define CALL_TEXTS 2 /* texts among the arguments of one system call, at most */
#define TEXT_BYTES 512 /* bytes of a text with its NUL, at most */

struct activity_call {
	struct activity head;
	__u64 args[CALL_ARGUMENTS];
	__u8 text[CALL_TEXTS][TEXT_BYTES]; /* as many as the call has */
};

#define CALL_SIZE(texts) (sizeof(struct activity_call) - (CALL_TEXTS - (texts)) * TEXT_BYTES)

_Static_assert(sizeof(struct activity) == 32, "activity");
_Static_assert(CALL_SIZE(0) == 80, "activity_call");

/* System calls of one kind of program have numbers below this. */
#define CALL_NUMBERS 512

#define CALL_RULES (ABI_COUNT * CALL_NUMBERS)

/* What to record of a system call; the index is abi * CALL_NUMBERS + number. */
struct call_rule {
	__u8 wanted;
	__u8 text[CALL_TEXTS]; /* arguments that are texts, from 1; 0 for none */
	__u8 reserved;
};

#define NAME_BYTES 256 /* bytes of a part of a path with its NUL, at most */
#define PATH_BYTES 1024 /* bytes of parts after which another one fits: a power of two */

struct activity_file {
	struct activity head; /* without number and pc of the program */
	__u64 file; /* the inode; unique as long as the process has it open */
	__u32 pid; /* process that uses it; 0 if the tracer's namespace has no ID for it */
	__s32 fd; /* its descriptor */
	__u32 event; /* enum file_event */
	__u32 lock_type; /* of the lock events; numbers of fcntl */
	__u32 lock_whence;
	__u32 path_length; /* bytes of path; 0: the path was sent before */
	__u64 lock_start;
	__u64 lock_length;
	__u8 path[PATH_BYTES + NAME_BYTES]; /* its parts, the last one first, a NUL after each */
	__u8 text[TEXT_BYTES]; /* for FILE_OPENED: the path that was passed */
};

/* Sizes that are sent: with the path, and with the text. */
#define FILE_SIZE __builtin_offsetof(struct activity_file, path)
#define FILE_PATH_SIZE __builtin_offsetof(struct activity_file, text)

_Static_assert(FILE_SIZE == 80, "activity_file");

/* With SWAP's numbers. */
enum file_event {
	FILE_OPENED = 0,
	FILE_CLOSES = 1,
	FILE_READS = 2,
	FILE_WRITES = 4,
	FILE_LOCKS = 14,
	FILE_UNLOCKS = 16,
};

/* What a system call does to files. */
enum file_kind {
	FILE_NOTHING,
	FILE_MOVES, /* reads and writes */
	FILE_CLOSE, /* the first argument is closed */
	FILE_FLOCK,
	FILE_FCNTL,
	/* These are sent when they end. */
	FILE_OPEN, /* makes a descriptor, from the path in an argument */
	FILE_GAIN, /* makes a descriptor in another way */
	FILE_EXEC,
};

/* What a system call does to files; indexed like call_rule. Arguments count from 1. */
struct file_rule {
	__u8 kind;
	__u8 reads; /* the argument whose file is read, 0 for none */
	__u8 writes; /* likewise */
	__u8 text; /* argument with the path */
};

/* Events that did not reach the tracer. */
enum activity_loss {
	ACTIVITY_RING_FULL,
	ACTIVITY_LOSS_COUNT,
};

#endif
