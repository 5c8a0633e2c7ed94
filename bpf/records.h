/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs and the tracer share: records in the rings, numbers of operations and loss
 * reasons, the packed description of a probe site. Fixed widths, no padding. tracer/event_test.go
 * compares the layout with the object.
 */
#ifndef RTRACE_RECORDS_H
#define RTRACE_RECORDS_H

#include "helpers.h"
#include "regs.h"

/* Deepest stack that can be recorded; deeper ones are truncated and marked. */
#define MAX_DEPTH 512

enum record_kind {
	RECORD_ALLOC = 1, /* struct event: addr was allocated with size */
	RECORD_FREE, /* struct event: addr was freed */
	RECORD_MOVE_ENTER, /* struct event: realloc of addr began */
	RECORD_MOVE, /* struct move_event: old was freed, addr was allocated with size */
	RECORD_MOVE_UNDONE, /* struct event: realloc of addr failed, addr stays allocated */
	RECORD_STACK, /* struct stack_record: frames of a stack hash */
	RECORD_MAPS, /* struct event, head only: the dynamic loader changed the mappings */
	RECORD_RAW, /* struct raw_stack: what a stack was unwound from */
	RECORD_GROWTH, /* struct event: the allocator got size bytes at addr from the system */
	RECORD_CALL_STACK, /* struct event: stack of a function's call with its return address at addr */
	RECORD_SITE_DIFFERS, /* struct move_event: see report_difference in check.h */
	RECORD_FAULT, /* struct event: a page fault at addr; size is 1 if a page was there */
	/*
	 * struct move_event: a mapping is made within size bytes at addr. If entry_time is not 0, as
	 * many bytes of memory move there from old; if function is 1, its pages are made at once.
	 */
	RECORD_AREA,
};

enum stack_end {
	STACK_NONE = 0,
	STACK_COMPLETE,
	STACK_TRUNCATED,
	STACK_BAD_POINTER, /* the frame pointer chain breaks */
	STACK_UNREADABLE, /* user memory could not be read */
	STACK_NO_RULE, /* code without a rule, or with one that requires a full interpreter */
	STACK_UNMAPPED, /* code in no mapping that the tracer knows */
	STACK_BAD_FRAME, /* the rules lead downwards */
	STACK_HELPER, /* from the kernel's walker, which does not report why */
};

struct head {
	__u64 time; /* ns of CLOCK_MONOTONIC, read after the record was reserved */
	__u32 tid;
	__u16 function; /* index into the tracer's list of functions */
	__u8 kind;
	__u8 argument_kind; /* what struct event has in argument */
};

/* What an event contains of the call besides its size, if arguments are recorded. */
enum argument_kind {
	ARGUMENT_NOTHING,
	ARGUMENT_COUNT, /* the second factor of the size */
	ARGUMENT_ELEMENT, /* the first factor, because the second does not fit or is 0 */
	ARGUMENT_ALIGNMENT,
};

struct event {
	struct head head;
	__u64 addr;
	__u64 size;
	__u64 stack; /* hash of the stack, 0 for none; see also stack_or_caller */
	__u32 pid;
	__u32 argument; /* the head contains its kind */
};

struct move_event {
	struct event event;
	__u64 old;
	__u64 entry_time;
};

struct stack_record {
	struct head head;
	__u64 hash;
	__u16 depth;
	__u8 end; /* enum stack_end */
	__u8 frame_pointer; /* 1: at least one step used a frame pointer */
	__u32 reserved;
	__u64 frames[MAX_DEPTH];
};

#define RAW_BYTES 65536
#define RAW_RANGES 2

/* A copy of a stack in memory, for the tracer to unwind again. */
struct raw_stack {
	struct head head;
	__u64 hash; /* of the programs' result */
	__u64 pc, sp; /* where unwinding began */
	struct pt_regs regs;
	__u64 start[RAW_RANGES]; /* addresses that data was copied from */
	__u32 at[RAW_RANGES]; /* offsets in data */
	__u32 length[RAW_RANGES];
	__u8 data[RAW_BYTES]; /* at most */
};

#define RAW_HEAD_SIZE (sizeof(struct raw_stack) - RAW_BYTES)

#define STACK_HEAD_SIZE (sizeof(struct stack_record) - MAX_DEPTH * sizeof(__u64))

_Static_assert(sizeof(struct head) == 16, "head");
_Static_assert(sizeof(struct event) == 48, "event");
_Static_assert(sizeof(struct move_event) == 64, "move_event");
_Static_assert(STACK_HEAD_SIZE == 32, "stack_record");

/* Reasons why an event, or a part of it, did not reach the tracer. */
enum loss {
	LOSS_RING_FULL, /* no room in the ring: the event is missing */
	LOSS_STATE, /* no memory for the state of a thread */
	LOSS_NESTING, /* more probed calls open in one thread than its state holds */
	LOSS_MISSED_RETURN, /* a call was entered but its return never seen */
	LOSS_STACK, /* the frames of a stack could not be sent */
	LOSS_ARGUMENT, /* an argument in user memory could not be read */
	LOSS_LATE, /* the order of a realloc and other events is unknown */
	LOSS_SIDEBAND, /* the tracer was not notified of changed mappings */
	LOSS_COUNT,
};

enum operation {
	OPERATION_ALLOC = 1, /* returns the block */
	OPERATION_ALLOC_OUT, /* returns 0 and stores the block through a pointer */
	OPERATION_FREE,
	OPERATION_REALLOC,
	OPERATION_SBRK, /* from here on: how an allocator gets memory from the system */
	OPERATION_MMAP,
	OPERATION_MPROTECT,
	OPERATION_MREMAP,
};

/*
 * A probe site packed into the 64-bit cookie of its attachment: bits 0-9 function, 10-13
 * operation, 14-18 register of the size, 19-23 of its second factor, 24-28 of the block or out
 * pointer, 29-36 words pushed before the site, 37 ends in a jump to another probed function, 38
 * the size is a product whose overflow the processor's flags show or, where there is a second
 * factor, that is not a factor but the alignment, 39 counts only while a call is open. After a
 * call for memory the register of the block is that of the result. In 32-bit programs registers
 * from 16 on are words of the stack. 40-58 pages from the start of the allocator's code to the
 * site, 59 it may call the functions of another allocator, 60 a free that is open until it
 * returns, because it may lead to another allocator's, 61 jumps back to its own start, 62-63
 * which of the process's texts it is in.
 */
#define SITE_FUNCTION(s) ((__u16)((s)&0x3ff))
#define SITE_OPERATION(s) ((__u32)((s) >> 10) & 0xf)
#define SITE_SIZE_REG(s) ((__u32)((s) >> 14) & 0x1f)
#define SITE_COUNT_REG(s) ((__u32)((s) >> 19) & 0x1f)
#define SITE_BLOCK_REG(s) ((__u32)((s) >> 24) & 0x1f)
#define SITE_PUSHED(s) ((__u64)((s) >> 29) & 0xff)
#define SITE_TAIL_CALLS(s) ((__u32)((s) >> 37) & 1)
#define SITE_OVERFLOW_FLAG(s) ((__u32)((s) >> 38) & 1)
#define SITE_ALIGNMENT(s) (SITE_OVERFLOW_FLAG(s) && SITE_COUNT_REG(s) != NO_REG)
#define SITE_NESTED(s) ((__u32)((s) >> 39) & 1)
#define SITE_PAGES(s) ((s) >> 40 & 0x7ffff)
#define SITE_LEADS(s) ((__u32)((s) >> 59) & 1)
#define SITE_OPENS(s) ((__u32)((s) >> 60) & 1)
#define SITE_REENTERS(s) ((__u32)((s) >> 61) & 1)
#define SITE_TEXT(s) ((s) >> 62)

/* At entries bit 39 means: the function's return instructions are probed, because it may throw. */
#define SITE_EXITS(s) ((__u32)((s) >> 39) & 1)

/* C++ operators: 37 may end in a jump to another function, 40-46 bytes from the entry to the site, 47-62 length of the code. */
#define SITE_OFFSET(s) ((s) >> 40 & 0x7f)
#define SITE_LENGTH(s) ((__u16)((s) >> 47))

/* Files whose allocators are probed in one process. */
#define MAX_TEXTS 4

/* Code of a file that contains an allocator; both 0 if there is none. */
struct text {
	__u64 start, end;
};

struct target {
	__u64 epoch; /* changes with the mappings; no two processes have the same */
	__u32 space; /* slot in spaces */
	__u32 reserved;
};

/* A traced process. The state of its threads has a copy of what all calls need. */
struct process {
	struct target target;
	struct text texts[MAX_TEXTS];
};

enum unwind_mode {
	UNWIND_AUTO, /* tables, and a frame-pointer step where they have no rule */
	UNWIND_TABLES,
	UNWIND_FRAME_POINTER,
	UNWIND_HELPER,
};

/* One program in this many is timed. A prime, because calls of malloc and free alternate. */
#define TIMED_OF 31
#define TIMED_LONGEST 100000 /* ns; a program that took longer was interrupted */

/* Work counters, for the tracer's statistics. */
enum work_kind {
	WORK_WALK, /* stacks that were not in the stack cache */
	WORK_SEARCH, /* addresses whose rule was not in the rule cache */
	WORK_UNCHECKED, /* raw stacks that found no room in the ring */
	WORK_HIT, /* probes that were hit, except return probes */
	WORK_RETURN, /* return probes that were hit */
	WORK_FAULT, /* page faults of the process */
	WORK_COMPARED, /* calls whose report was compared with their return: see check.h */
	WORK_DIFFER, /* those of them that differ */
	WORK_BEGAN, /* when the program that is being timed began; 0: none is */
	WORK_TIME, /* nanoseconds of the timed programs: see TIMED_OF */
	WORK_COUNT,
};

#endif
