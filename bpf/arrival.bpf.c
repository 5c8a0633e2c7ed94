// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Waits for the next process that executes a program with a given name, and keeps it from its
 * first instruction until a holder seizes it with ptrace.
 *
 * The tracepoint is at the end of exec, before the place where a process stops whose holder wants
 * to see it exec. So the program notifies the holder and waits, at most a few milliseconds, until
 * the process is seized. Parents do not see the stop that follows. If the process is not seized
 * in time, it gets SIGSTOP, which takes effect before its first instruction. Parents can see
 * that.
 *
 * Needs Linux 5.10, and no tracefs.
 */
#include "arrival.h"
#include "task.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The flavor distinguishes it from other partial definitions of a task. */
struct task_struct___traced {
	__u32 ptrace; /* not 0: the task is traced */
} __attribute__((preserve_access_index));

/* Keeps the types in the object's debug information, for the generated Go types. */
const struct arrival *unused_arrival __attribute__((unused));
const enum arrival_state *unused_arrival_state __attribute__((unused));

/* Settings, fixed before the programs are loaded. */
volatile const __u8 cfg_comm[COMM_BYTES] = {}; /* the name, padded with NULs */
volatile const __u32 cfg_pidns = 0; /* the inode of the tracer's PID namespace */
volatile const __u64 cfg_patience = 0; /* ns to wait for the holder */

/*
 * The process, at key 0. There is none until a process has arrived. Either a process adds the
 * entry or, when it stops waiting, the holder: the first one wins. Never deleted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct arrival);
} arrivals SEC(".maps");

/* Wakes the holder. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} wakes SEC(".maps");

/* stay, so that it can call itself. Filled by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} stays SEC(".maps");

__u64 came = 0; /* when the process arrived, ns of CLOCK_MONOTONIC */

#define NAMESPACE_LEVELS 32 /* MAX_PID_NS_LEVEL */

/* number_of returns the ID of a task in the tracer's namespace, 0 if it has none. */
static __always_inline __u32 number_of(struct task_struct *task)
{
	struct pid_namespace *ns;
	__u32 level = 0, inum, number = 0;
	struct pid *pid;

	if (READ_KERNEL(pid, task->thread_pid) || READ_KERNEL(level, pid->level))
		return 0;
	for (__u32 i = 0; i <= NAMESPACE_LEVELS && i <= level; i++) {
		if (READ_KERNEL(ns, pid->numbers[i].ns) || READ_KERNEL(inum, ns->ns.inum))
			return 0;
		if (inum != cfg_pidns)
			continue;
		READ_KERNEL(number, pid->numbers[i].nr);
		return number;
	}
	return 0;
}

/* is_wanted reports whether the current task has the name. */
static __always_inline bool is_wanted(void)
{
	__u8 comm[COMM_BYTES] = {};

	if (bpf_get_current_comm(comm, sizeof(comm)))
		return false;
	for (int i = 0; i < COMM_BYTES; i++) {
		if (comm[i] != cfg_comm[i])
			return false;
		if (!comm[i])
			return true;
	}
	return true;
}

static __always_inline void settle(__u32 state)
{
	__u32 key = 0;
	struct arrival *a = bpf_map_lookup_elem(&arrivals, &key);

	if (!a)
		return;
	a->waited = bpf_ktime_get_ns() - came;
	a->state = state;
}

SEC("raw_tp/sched_process_exec")
int executed(void *ctx)
{
	struct arrival a = { .state = ARRIVAL_WAITS };
	__u32 key = 0;

	if (!is_wanted())
		return 0;
	a.pid = number_of(bpf_get_current_task());
	if (!a.pid || bpf_map_update_elem(&arrivals, &key, &a, BPF_NOEXIST))
		return 0;
	came = bpf_ktime_get_ns();
	bpf_ringbuf_output(&wakes, &a.pid, sizeof(a.pid), BPF_RB_FORCE_WAKEUP);
	bpf_tail_call(ctx, &stays, 0);
	return 0;
}

#define LOOKS 1024 /* per program: the verifier follows each, and not too many branches */
#define READS 6 /* per look, so that all of them take longer than the patience */

/* stay waits for the holder. It may call itself some thirty times. */
SEC("raw_tp/sched_process_exec")
int stay(void *ctx)
{
	struct task_struct___traced *task = (void *)bpf_get_current_task();
	__u32 held = 0, now = 0;

	for (int i = 0; i < LOOKS; i++) {
		for (int n = 0; n < READS; n++) {
			READ_KERNEL(now, task->ptrace);
			held |= now;
		}
		if (held || bpf_ktime_get_ns() - came >= cfg_patience)
			break;
	}
	if (!held && bpf_ktime_get_ns() - came < cfg_patience)
		bpf_tail_call(ctx, &stays, 0);
	if (!held && !bpf_send_signal(SIGSTOP))
		settle(ARRIVAL_STOPPED);
	else
		settle(ARRIVAL_HELD);
	return 0;
}
