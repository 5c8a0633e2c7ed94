/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few types, helper numbers and map macros that the programs need, so that building them
 * requires only a compiler. Helper numbers are kernel ABI (include/uapi/linux/bpf.h).
 */
#ifndef RTRACE_HELPERS_H
#define RTRACE_HELPERS_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef __u8 bool;

#define true 1
#define false 0
#define NULL ((void *)0)

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))

/*
 * The verifier checks a global function once, but a static one at every call. Global ones take
 * pointers since Linux 5.12 and return a number.
 */
#ifdef BOUNDED
#define VERIFIED_ONCE static __noinline
#else
#define VERIFIED_ONCE __noinline
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Map definitions: the loader reads them from the types' debug information. */
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define __array(name, val) typeof(val) *name[]

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_F_INNER_MAP = 1 << 12,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};

#define SIGSTOP 19

#define BPF_F_CURRENT_CPU 0xffffffffULL
#define BPF_F_USER_STACK (1ULL << 8)

struct task_struct;
struct pt_regs;

struct bpf_pidns_info {
	__u32 pid;
	__u32 tgid;
};

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
					 __u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static __u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static long (*const bpf_tail_call)(void *ctx, void *programs, __u32 index) = (void *)12;
static __u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*const bpf_get_current_comm)(void *to, __u32 size) = (void *)16;
static struct task_struct *(*const bpf_get_current_task)(void) = (void *)35;
static long (*const bpf_get_stack)(void *ctx, void *to, __u32 size, __u64 flags) = (void *)67;
static long (*const bpf_perf_event_output)(void *ctx, void *map, __u64 flags, void *data,
					   __u64 size) = (void *)25;
static long (*const bpf_send_signal)(__u32 number) = (void *)109;
static long (*const bpf_probe_read_user)(void *dst, __u32 size, const void *src) = (void *)112;
static long (*const bpf_probe_read_kernel)(void *dst, __u32 size, const void *src) = (void *)113;
static long (*const bpf_probe_read_user_str)(void *dst, __u32 size, const void *src) = (void *)114;
static long (*const bpf_probe_read_kernel_str)(void *dst, __u32 size,
					       const void *src) = (void *)115;
static long (*const bpf_get_ns_current_pid_tgid)(__u64 dev, __u64 ino, struct bpf_pidns_info *info,
						 __u32 size) = (void *)120;
static long (*const bpf_ringbuf_output)(void *ringbuf, void *data, __u64 size,
					__u64 flags) = (void *)130;
static void *(*const bpf_ringbuf_reserve)(void *ringbuf, __u64 size, __u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static __u64 (*const bpf_ringbuf_query)(void *ringbuf, __u64 flags) = (void *)134;
static void *(*const bpf_task_storage_get)(void *map, struct task_struct *task, void *value,
					   __u64 flags) = (void *)156;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static __u64 (*const bpf_get_attach_cookie)(void *ctx) = (void *)174;
static struct pt_regs *(*const bpf_task_pt_regs)(struct task_struct *task) = (void *)175;
static long (*const bpf_loop)(__u32 count, void *callback, void *context,
			      __u64 flags) = (void *)181;

#endif
