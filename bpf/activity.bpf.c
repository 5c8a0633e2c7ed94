// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a process does besides allocating: where its threads are at regular intervals, when they
 * leave a processor and get one, which system calls they make. The events of all processes run
 * these programs; those of other processes return at once.
 *
 * Needs Linux 5.10, and no tracefs: raw tracepoints and a perf event per CPU.
 */
#include "activity.h"
#include "systemcall.h"
#include "watch.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Keeps the types in the object's debug information, for the generated Go types. */
const struct activity *unused_activity __attribute__((unused));
const struct activity_call *unused_activity_call __attribute__((unused));
const enum activity_kind *unused_activity_kind __attribute__((unused));
const enum activity_abi *unused_activity_abi __attribute__((unused));
const enum activity_loss *unused_activity_loss __attribute__((unused));

volatile const bool cfg_state_first = false; /* sched_switch has prev and next one argument later */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CALL_RULES);
	__type(key, __u32);
	__type(value, struct call_rule);
} calls SEC(".maps");

struct known_thread {
	__u64 start; /* when it began, which distinguishes it from others with its ID */
	__u32 tid; /* in the tracer's namespace */
	__u32 reserved;
};

/*
 * Threads by their ID in the initial PID namespace. In the tracer's namespace they have an ID
 * only while they are the current task and not about to end. Used with cfg_pid_namespace; other
 * threads displace the entries of dead ones.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct known_thread);
} threads SEC(".maps");

/* find_thread returns the ID in the tracer's namespace of a task that was seen before, else 0. */
static __always_inline __u32 find_thread(__u32 global, __u64 start)
{
	struct known_thread *known = bpf_map_lookup_elem(&threads, &global);

	return known && known->start == start ? known->tid : 0;
}

/* thread_in_namespace is current_thread for a tracer outside of the initial PID namespace. */
static __always_inline __u32 thread_in_namespace(__u32 global)
{
	struct task_struct *task = bpf_get_current_task();
	struct known_thread known = {};
	struct bpf_pidns_info ids;
	__u32 tid;

	READ_KERNEL(known.start, task->start_time);
	tid = find_thread(global, known.start);
	if (tid)
		return tid;
	if (bpf_get_ns_current_pid_tgid(cfg_pidns_dev, cfg_pidns_ino, &ids, sizeof(ids)) ||
	    ids.tgid != cfg_pid)
		return 0;
	known.tid = ids.pid;
	bpf_map_update_elem(&threads, &global, &known, BPF_ANY);
	return ids.pid;
}

/* current_thread returns the thread ID, 0 if the task belongs to another process. */
static __always_inline __u32 current_thread(void)
{
	__u64 global = bpf_get_current_pid_tgid();

	if (!enabled)
		return 0;
	if (cfg_pid_namespace)
		return thread_in_namespace(global);
	return global >> 32 == cfg_pid ? (__u32)global : 0;
}

/* thread_of is current_thread for a task that is not running yet. */
static __always_inline __u32 thread_of(struct task_struct *task)
{
	__u32 tgid = 0, tid = 0;
	__u64 start = 0;

	if (!enabled)
		return 0;
	if (!cfg_pid_namespace) {
		/* Most tasks belong to other processes. */
		if (READ_KERNEL(tgid, task->tgid) || tgid != cfg_pid)
			return 0;
		READ_KERNEL(tid, task->pid);
		return tid;
	}
	READ_KERNEL(tid, task->pid);
	READ_KERNEL(start, task->start_time);
	return find_thread(tid, start);
}

static __always_inline void emit(__u8 kind, __u32 tid, __u64 pc)
{
	struct activity *a = reserve(sizeof(*a));

	if (!a)
		return;
	fill(a, kind, tid, pc);
	bpf_ringbuf_submit(a, BPF_RB_NO_WAKEUP);
}

/* sampled runs at each tick of a CPU's clock. In the kernel, pc is the place of entry into it. */
SEC("perf_event")
int sampled(void *ctx)
{
	__u32 tid = current_thread();
	__u64 pc = 0;

	if (!tid)
		return 0;
	if (bpf_get_stack(ctx, &pc, sizeof(pc), BPF_F_USER_STACK) < 0)
		pc = 0;
	emit(ACTIVITY_SAMPLE, tid, pc);
	return 0;
}

/* switched runs while the task that leaves the processor is still the current one. */
SEC("raw_tp/sched_switch")
int switched(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 next;
	__u32 tid = current_thread();

	if (tid)
		emit(ACTIVITY_OFF, tid, 0);
	/* In assembly, because the compiler would make one load at a computed address of the two. */
	if (cfg_state_first)
		asm volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(next) : "r"(ctx));
	else
		asm volatile("%0 = *(u64 *)(%1 + 16)" : "=r"(next) : "r"(ctx));
	tid = thread_of((struct task_struct *)next);
	if (tid)
		emit(ACTIVITY_ON, tid, 0);
	return 0;
}

/* rule_of returns the rule for a system call, NULL if it is not recorded. */
static __always_inline struct call_rule *rule_of(__u64 number, __u32 abi)
{
	__u32 at = abi * CALL_NUMBERS + number;
	struct call_rule *rule;

	if (number >= CALL_NUMBERS)
		return NULL;
	rule = bpf_map_lookup_elem(&calls, &at);
	return rule && rule->wanted ? rule : NULL;
}

static __always_inline void describe(struct activity *a, __u8 kind, __u32 tid, struct pt_regs *regs,
				     __u64 number, __u32 abi)
{
	fill(a, kind, tid, REG_PC(regs));
	a->number = number;
	a->abi = abi;
}

/* read_text reads the text in argument n, from 1, and returns whether it failed. */
static __always_inline bool read_text(__u8 *to, struct activity_call *c, __u32 n)
{
	__u64 from;

	to[0] = 0;
	n--;
	asm volatile("" : "+r"(n)); /* keeps the check before the use */
	if (n >= CALL_ARGUMENTS)
		return true;
	from = c->args[n];
	return bpf_probe_read_user_str(to, TEXT_BYTES, (void *)from) < 0;
}

/* send_call sends a system call with the given number of texts. */
static __always_inline void send_call(struct pt_regs *regs, __u32 tid, __u64 number, __u32 abi,
				      struct call_rule *rule, __u32 texts)
{
	struct activity_call *c = reserve(CALL_SIZE(texts));
	__u64 unread = 0;

	if (!c)
		return;
	arguments(c->args, regs, abi);
	if (texts > 0 && read_text(c->text[0], c, rule->text[0]))
		unread |= 1;
	if (texts > 1 && read_text(c->text[1], c, rule->text[1]))
		unread |= 2;
	describe(&c->head, ACTIVITY_CALL, tid, regs, number, abi);
	c->head.result = unread;
	bpf_ringbuf_submit(c, BPF_RB_NO_WAKEUP);
}

SEC("raw_tp/sys_enter")
int call_begins(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tid = current_thread(), abi;
	__u64 number = ctx->args[1];
	struct call_rule *rule;
	struct pt_regs regs;

	if (!tid)
		return 0;
	abi = abi_of();
	rule = rule_of(number, abi);
	if (!rule || bpf_probe_read_kernel(&regs, sizeof(regs), (void *)ctx->args[0]))
		return 0;
	if (!rule->text[0])
		send_call(&regs, tid, number, abi, rule, 0);
	else if (!rule->text[1])
		send_call(&regs, tid, number, abi, rule, 1);
	else
		send_call(&regs, tid, number, abi, rule, 2);
	return 0;
}

SEC("raw_tp/sys_exit")
int call_ends(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tid = current_thread(), abi;
	struct pt_regs regs;
	struct activity *a;
	__u64 number;

	if (!tid)
		return 0;
	if (bpf_probe_read_kernel(&regs, sizeof(regs), (void *)ctx->args[0]))
		return 0;
	number = number_of(&regs, (void *)ctx->args[0]);
	abi = abi_of();
	if (!rule_of(number, abi))
		return 0;
	a = reserve(sizeof(*a));
	if (!a)
		return 0;
	describe(a, ACTIVITY_RETURN, tid, &regs, number, abi);
	a->result = ctx->args[1];
	bpf_ringbuf_submit(a, BPF_RB_NO_WAKEUP);
	return 0;
}
