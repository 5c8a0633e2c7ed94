/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Settings, maps and the state of a thread between entry and return. */
#ifndef RTRACE_STATE_H
#define RTRACE_STATE_H

#include "records.h"

/* Settings, fixed before the programs are loaded. */
volatile const bool cfg_task_storage = true; /* otherwise state is a hash by thread ID */
volatile const bool cfg_no_storage = false; /* for tests: as if none could be made */
volatile const bool cfg_cookies = true; /* otherwise sites are found by address */
volatile const bool cfg_perf_buffer = false; /* perf event arrays instead of ring buffers */
volatile const bool cfg_backtrace_all = false; /* frees have a stack too */
volatile const bool cfg_pid_namespace = false; /* the tracer is not in the initial one */
volatile const __u64 cfg_pidns_dev = 0;
volatile const __u64 cfg_pidns_ino = 0;
volatile const bool cfg_args = false; /* events contain arguments besides sizes */
volatile const __u64 cfg_min_size = 0; /* smaller allocations are not reported */
volatile const __u32 cfg_depth = 64; /* most frames of a stack, 0 for no stacks */
volatile const __u32 cfg_unwind = UNWIND_AUTO;
volatile const bool cfg_stack_cache = true; /* cached stacks are not unwound again */
volatile const __u32 cfg_verify = 0; /* one in this many stacks is also sent raw */
volatile const __u32 cfg_verify_sites = 0; /* one in this many calls is compared: see check.h */
volatile const bool cfg_inside = false; /* leave is at sites inside functions, too: see pass.h */
volatile const __u64 cfg_wake_at = 0; /* bytes in a ring that wake the tracer */
volatile const __u64 cfg_page_size = 4096;
volatile const __u64 cfg_address_mask =
	(1ULL << 48) - 1; /* bits that addresses of the target have */

/* Changed by the tracer while the programs run. */
volatile __u32 enabled = 0;
volatile __u32 generation = 1; /* grows whenever targets, enabled or gaps change */
volatile __u32 gaps = 0; /* how often the probes were removed and attached again */

struct call {
	__u64 slot; /* where the return address is or would be on the stack; identifies the call */
	__u64 size;
	__u64 block; /* realloc: old block; out pointer of posix_memalign; exits: return address */
	__u64 time; /* realloc: when it was entered */
	__u16 function; /* that it counts as: perhaps an operator */
	__u16 entered;
	__u8 operation;
	__u8 skip; /* its return is not sent: below the size limit, or a free */
	__u8 tail_calls : 1;
	__u8 reenters : 1;
	__u8 exits : 1; /* its return instructions have probes, and it may throw */
	__u8 entry_lost : 1; /* realloc: no record contains its entry */
	__u8 argument_kind; /* the kind of argument */
	__u32 argument;
	__u32 reserved;
};

#define MAX_CALLS 8
#define PASSED MAX_CALLS /* the place of a call that a site inside its function records */

/* The arguments of a call whose block is not known yet: see pass.h. */
struct note {
	__u64 slot; /* where its return address is on the stack; 0: there is no call */
	__u64 size;
	__u32 argument;
	__u32 argument_kind;
};

#define MAX_NOTES 4

/* A call with which the allocator gets memory from the system. */
struct growth {
	__u64 slot; /* where its return address will be; 0: there is no call */
	__u64 addr; /* of the memory, if the call passes it */
	__u64 size;
	__u64 old_size; /* mremap */
	__u32 operation;
	__u32 reserved;
};

/* A C++ operator that was entered: see operator.h. */
struct operator_note {
	__u64 slot; /* where its return address is or would be on the stack; 0: there is no operator */
	__u64 caller; /* its return address */
	__u64 start; /* of its code */
	__u32 used_at; /* low half of the slot of the call that took the name; 0: none yet */
	__u16 length; /* bytes of code */
	__u16 function; /* the outermost operator: the name */
};

#define WINDOW_BYTES (348 * sizeof(__u64))
#define WINDOW_WORDS (WINDOW_BYTES / sizeof(word))

/* A piece of the user's stack, copied at once: a read costs as much as 300 words. */
struct window {
	__u64 base; /* address of the first word */
	__u64 top; /* copies that crossed this address failed */
	__u32 length; /* bytes */
	__u16 span; /* bytes that the previous stack took, at most those of a window */
	__u16 beyond; /* its frames outside of its first window */
	word words[WINDOW_WORDS];
};

/* How a call ended: its result, and where it returns to with which registers. */
struct ending {
	__u64 result;
	__u64 pc, fp, sp;
};

/* Stacks up to this depth can be in the stack cache. */
#define MAX_SLOTS 96
#define MAX_EXTRA 32
#define SLOT_PAIR 1 /* in a slot: the word below decides as well */
#define SLOT_FAR 0xfffe /* in a slot: the word is a far one */

/*
 * A large frame moves its callers out of the window. A few words there are read one by one and do
 * not keep a stack out of the cache.
 */
#define MAX_FAR 6
#define FAR_LIMIT (1 << 20) /* bytes from the first sp */

/*
 * The state of unwinding. What decided the stack is kept as slots, offsets in bytes within the
 * first window: of each frame's return address, and of the other words that were read.
 */
struct walk {
	__u64 pc, sp; /* of the frame that is about to be left */
	__u64 fp; /* its frame pointer, or where that was saved: see fp_at */
	__u64 ra_slot; /* how a return probe identifies the return address in pc */
	__u64 interrupted; /* registers in the signal frame if a signal interrupted pc */
	__u64 first_sp;
	__u64 other_sp; /* of the stack that was left for that of a signal handler, else 0 */
	__u64 hash; /* of the frames */
	__u32 depth;
	__u16 extras; /* words read besides return addresses */
	__u8 end; /* enum stack_end */
	__u8 fp_at; /* enum fp_at */
	__u8 called; /* pc is a return address: the call is before it */
	__u8 fp_step; /* 1: the last step used the frame pointer */
	__u8 fp_used; /* 1: some step did */
	__u8 fp_needed; /* 1: the stack depends on the frame pointer it began with */
	__u8 uncached; /* 1: the stack depends on more than slot lists */
	__u8 sp_lost; /* 1: sp is only known not to be lower */
	__u8 late; /* 1: it leads through code that has no table yet */
	__u8 fars; /* far words that were read */
	__u16 beyond; /* frames outside of the first window */
	__u32 far_at[MAX_FAR]; /* bytes from the first sp */
	__u64 far_value[MAX_FAR];
	__u16 extra[MAX_EXTRA];
	__u16 slot[MAX_SLOTS]; /* by frame; the first has none */
#if defined(__TARGET_ARCH_arm64)
	__u64 link; /* the link register of code that a page fault interrupted, else 0 */
#endif
};

enum fp_at {
	FP_FIRST, /* fp has its initial value */
	FP_VALUE,
	FP_SAVED, /* fp is an address where the value was saved */
	FP_UNKNOWN,
};

struct thread {
	__u32 generation; /* of the copied target */
	__u32 pid;
	__u32 tid;
	__u32 depth; /* open calls */
	__u32 gaps; /* value of gaps when they were entered */
	__u32 at; /* the place of the call that is being recorded, or of a note */
	__u64 internal; /* where the return address of the allocator's own free will be, else 0 */
	struct target target;
	struct call calls[MAX_CALLS + 1];
	struct growth growth;
	struct operator_note new, delete;
	struct note notes[MAX_NOTES];
	/* Scratch. A program can be preempted, so it belongs to the thread. */
	__u64 inside; /* stack pointer at a site inside a function whose stack is recorded, else 0 */
	__u32 unverified; /* stacks since one was sent raw */
	__u16 luck; /* grows if the stack cache helps */
	__u16 turn; /* stacks without luck */
	struct walk walk;
	struct window window;
	struct stack_record stack;
};

/* The kernel's allocator rounds up to 8 KiB, some of which it needs itself. */
_Static_assert(sizeof(struct thread) <= 8192 - 128, "thread");

/* State of the threads of the targets. The kernel frees it with the thread. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __s32);
	__type(value, struct thread);
} threads SEC(".maps");

/*
 * The same for kernels without task storage, and for threads whose storage could not be made:
 * while a program is preempted within the helper, no other program on its CPU can make any. The
 * tracer deletes the entries of dead threads.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thread);
} threads_by_tid SEC(".maps");

/* A zeroed thread to start from: it is too large for the program's stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thread);
} blank_threads SEC(".maps");

/* Traced processes by process ID. The tracer adds and deletes them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct process);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOSS_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WORK_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} work SEC(".maps");

/* count is exact except for programs that preempt each other: it is for statistics. */
static __always_inline void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&work, &what);

	if (n)
		*n += 1;
}

/*
 * hit counts a probe that was hit, and times one in TIMED_OF. It stores the start time in a map,
 * so that the verifier has no second path through the program to check. A program that preempts a
 * timed one may be timed instead.
 */
static __always_inline void hit(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&work, &what);
	__u32 at = WORK_BEGAN;

	if (!n)
		return;
	*n += 1;
	if (likely(*n % TIMED_OF))
		return;
	n = bpf_map_lookup_elem(&work, &at);
	if (n)
		*n = bpf_ktime_get_ns();
}

/* done ends what hit has begun. */
static __always_inline void done(void)
{
	__u32 at = WORK_BEGAN;
	__u64 *began = bpf_map_lookup_elem(&work, &at), *time, took;

	if (!began || likely(!*began))
		return;
	took = bpf_ktime_get_ns() - *began;
	*began = 0;
	at = WORK_TIME;
	time = bpf_map_lookup_elem(&work, &at);
	if (time && took < TIMED_LONGEST)
		*time += took;
}

/*
 * ending_of returns the ending of the call that is being recorded. It is in the thread's window,
 * which is free until the call's stack is recorded, after the words that keep_places needs.
 */
static __always_inline struct ending *ending_of(struct thread *t)
{
	return (struct ending *)&t->window.words[32];
}

static __always_inline void lose(__u32 reason)
{
	__u64 *n = bpf_map_lookup_elem(&losses, &reason);

	/* Atomic although per CPU: another program may preempt this one. */
	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline struct thread *hashed_thread(void)
{
	__u32 tid = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&threads_by_tid, &tid);
}

static __always_inline struct thread *stored_thread(void)
{
	struct thread *t;

	if (cfg_task_storage) {
		t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);
		if (likely(t))
			return t;
	}
	return hashed_thread();
}

/* new_thread makes the state of the current thread, which has none. */
static __always_inline struct thread *new_thread(void)
{
	__u32 tid = bpf_get_current_pid_tgid(), zero = 0;
	struct thread *t;
	void *blank;

	if (cfg_task_storage && !cfg_no_storage) {
		t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL,
					 BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (likely(t))
			return t;
	}
	blank = bpf_map_lookup_elem(&blank_threads, &zero);
	if (blank)
		bpf_map_update_elem(&threads_by_tid, &tid, blank, BPF_NOEXIST);
	return hashed_thread();
}

/* current_ids returns process and thread ID in the tracer's namespace. */
static __always_inline __u64 current_ids(void)
{
	struct bpf_pidns_info ids;

	if (!cfg_pid_namespace)
		return bpf_get_current_pid_tgid();
	if (bpf_get_ns_current_pid_tgid(cfg_pidns_dev, cfg_pidns_ino, &ids, sizeof(ids)))
		return 0;
	return (__u64)ids.tgid << 32 | ids.pid;
}

/*
 * forget_open drops calls that were open before a pause: their ends were not seen, and other
 * calls are in their places on the stack now.
 */
static __always_inline void forget_open(struct thread *t)
{
	t->depth = 0;
	t->internal = 0;
	t->growth.slot = 0;
	t->new.slot = 0;
	t->delete.slot = 0;
	for (int i = 0; i < MAX_NOTES; i++)
		t->notes[i].slot = 0;
}

/*
 * refresh_thread makes or renews the state of the current thread. It returns NULL if its process
 * is not traced or there is no memory, which loses a call if one begins here.
 */
static __noinline struct thread *refresh_thread(bool begins)
{
	__u64 ids = current_ids();
	__u32 pid = ids >> 32;
	/* Read first: a change from here on makes the state outdated again. */
	__u32 now = generation;
	struct process *process;
	struct thread *t;

	if (!enabled)
		return NULL;
	process = bpf_map_lookup_elem(&targets, &pid);
	if (!process)
		return NULL;
	t = stored_thread();
	if (!t)
		t = new_thread();
	if (!t) {
		if (begins)
			lose(LOSS_STATE);
		return NULL;
	}
	/* A new state is all zero; an older one keeps its open calls. */
	t->target = process->target;
	t->pid = pid;
	t->tid = ids;
	if (unlikely(t->gaps != gaps)) {
		t->gaps = gaps;
		forget_open(t);
	}
	t->generation = now;
	return t;
}

/*
 * current_thread returns the state of the current thread if it is traced. What is the same for
 * all threads, such as being switched off, is checked only when the generation has changed.
 * begins reports whether a call begins here.
 */
static __always_inline struct thread *current_thread(bool begins)
{
	struct thread *t = stored_thread();

	if (likely(t && t->generation == generation))
		return t;
	return refresh_thread(begins);
}

#endif
