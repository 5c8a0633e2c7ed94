// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What other processes do with files that a process has open.
 *
 * The system calls of all processes run these programs. Most return after a look at the number;
 * those that use a descriptor, after a look at its file. A file is identified by its inode: while
 * the process has it open, no other one can be at that address.
 *
 * Needs Linux 5.10: raw tracepoints, and an iterator for what is open at the start.
 */
#include "activity.h"
#include "systemcall.h"
#include "held.h"
#include "lock.h"
#include "path.h"
#include "watch.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Keeps the types in the object's debug information, for the generated Go types. */
const struct activity_file *unused_activity_file __attribute__((unused));
const struct file_rule *unused_file_rule __attribute__((unused));
const enum file_kind *unused_file_kind __attribute__((unused));
const enum file_event *unused_file_event __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CALL_RULES);
	__type(key, __u32);
	__type(value, struct file_rule);
} file_rules SEC(".maps");

/* The system call that a thread is in, if its end is recorded. */
struct pending {
	__u64 start; /* when the thread began: a thread that is killed in a call leaves this behind */
	__u32 number;
	__u32 ends; /* how many ends are recorded */
};

/* By thread ID. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct pending);
} pending SEC(".maps");

/* ids are the IDs of the current task in the tracer's namespace; 0 if it has none there. */
struct ids {
	__u32 pid, tid;
};

static __always_inline void current_ids(struct ids *ids)
{
	struct bpf_pidns_info info = {};
	__u64 global = bpf_get_current_pid_tgid();

	ids->pid = global >> 32;
	ids->tid = global;
	if (!cfg_pid_namespace)
		return;
	if (bpf_get_ns_current_pid_tgid(cfg_pidns_dev, cfg_pidns_ino, &info, sizeof(info))) {
		info.tgid = 0;
		info.pid = 0;
	}
	ids->pid = info.tgid;
	ids->tid = info.pid;
}

/* use is a use of a file. */
struct use {
	struct ids ids;
	__s32 fd;
	__u32 event;
	struct lock lock;
};

static __always_inline void describe(struct activity_file *f, struct use *use, struct file *file)
{
	f->file = (__u64)inode_of(file);
	f->pid = use->ids.pid;
	f->fd = use->fd;
	f->event = use->event;
	f->lock_type = use->lock.type;
	f->lock_whence = use->lock.whence;
	f->path_length = 0;
	f->lock_start = use->lock.start;
	f->lock_length = use->lock.length;
	fill(&f->head, ACTIVITY_FILE_USE, use->ids.tid, 0);
}

static __always_inline void send_done(struct ids *ids, __u64 result)
{
	struct activity *a = reserve(sizeof(*a));

	if (!a)
		return;
	fill(a, ACTIVITY_FILE_DONE, ids->tid, ids->pid);
	a->result = result;
	bpf_ringbuf_submit(a, BPF_RB_NO_WAKEUP);
}

/* hold records that the process has a file open. */
static __always_inline void hold(struct files_struct *files, struct file *file, __u32 fd)
{
	struct inode *inode = inode_of(file);

	know_files(files);
	if (inode && is_regular(inode))
		note_held(files, inode, fd);
}

struct bpf_iter__task_file {
	void *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

/* is_process reports whether a task belongs to the process, which is not the current one. */
static __always_inline bool is_process(struct task_struct *task)
{
	struct task_struct *leader = NULL;
	struct pid_namespace *ns = NULL;
	struct pid *pid = NULL;
	__u32 level = 0, inum = 0, number = 0;

	if (!cfg_pid_namespace) {
		READ_KERNEL(number, task->tgid);
		return number == cfg_pid;
	}
	READ_KERNEL(leader, task->group_leader);
	if (READ_KERNEL(pid, leader->thread_pid) || READ_KERNEL(level, pid->level) || level > 32)
		return false;
	READ_KERNEL(number, pid->numbers[level].nr);
	READ_KERNEL(ns, pid->numbers[level].ns);
	READ_KERNEL(inum, ns->ns.inum);
	return number == cfg_pid && inum == cfg_pidns_ino;
}

/* opened_before runs for each open file of the machine when the tracer reads the iterator. */
SEC("iter/task_file")
int opened_before(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct files_struct *files = NULL;

	if (!task || !file || !is_process(task))
		return 0;
	READ_KERNEL(files, task->files);
	hold(files, file, ctx->fd);
	return 0;
}

static __always_inline struct file_rule *file_rule_of(__u64 number, __u32 abi)
{
	__u32 at = abi * CALL_NUMBERS + number;
	struct file_rule *rule;

	if (number >= CALL_NUMBERS || abi >= ABI_COUNT)
		return NULL;
	rule = bpf_map_lookup_elem(&file_rules, &at);
	return rule && rule->kind != FILE_NOTHING ? rule : NULL;
}

/*
 * send sends the use of a descriptor, and reports whether there was anything to send. The first
 * use after the process has opened the file includes the path. The parameters are the parts of
 * struct use: before Linux 5.12 only numbers can be passed to a function that is verified once.
 */
__noinline int send(__u64 ids, __u64 fd_event, __u64 lock, __u64 start, __u64 length)
{
	struct use use = {
		.ids = { ids >> 32, ids },
		.fd = fd_event,
		.event = fd_event >> 32,
		.lock = { lock, lock >> 32, start, length },
	};
	struct file *file = file_of(current_files(), use.fd);
	struct held *h = find_held(inode_of(file));
	struct activity_file *f;

	if (!h)
		return 0;
	if (h->sent) {
		f = reserve(FILE_SIZE);
		if (!f)
			return 1;
		describe(f, &use, file);
	} else {
		f = reserve(FILE_PATH_SIZE);
		if (!f)
			return 1;
		describe(f, &use, file);
		f->path_length = read_path(f->path, file);
	}
	bpf_ringbuf_submit(f, BPF_RB_NO_WAKEUP);
	h->sent = 1;
	return 1;
}

static __always_inline __u32 send_use(struct use *use)
{
	return send(
		(__u64)use->ids.pid << 32 | use->ids.tid, (__u64)use->event << 32 | (__u32)use->fd,
		(__u64)use->lock.whence << 32 | use->lock.type, use->lock.start, use->lock.length);
}

/* send_open sends that a descriptor was made, and the end of that at once. */
static __always_inline void send_open(struct use *use, void *path)
{
	struct file *file = file_of(current_files(), use->fd);
	struct held *h = find_held(inode_of(file));
	struct activity_file *f;

	if (!h)
		return;
	f = reserve(sizeof(*f));
	if (f) {
		f->text[0] = 0;
		if (bpf_probe_read_user_str(f->text, sizeof(f->text), path) < 0)
			f->text[0] = 0;
		describe(f, use, file);
		f->path_length = read_path(f->path, file);
		bpf_ringbuf_submit(f, BPF_RB_NO_WAKEUP);
		h->sent = 1;
	}
	send_done(&use->ids, use->fd);
}

/* argument returns argument n, from 1. */
static __always_inline __u64 argument(__u64 *args, __u32 n)
{
	/* One by one: an index that is unknown at load time needs a proof for each kernel. */
	return n == 1 ? args[0] : n == 2 ? args[1] : args[2];
}

static __always_inline bool is_own(struct ids *ids)
{
	return ids->pid == cfg_pid;
}

static __always_inline __u64 current_start(void)
{
	struct task_struct *task = bpf_get_current_task();
	__u64 start = 0;

	READ_KERNEL(start, task->start_time);
	return start;
}

static __always_inline void expect_end(__u32 number, __u32 ends)
{
	struct pending p = { .start = current_start(), .number = number, .ends = ends };
	__u32 tid = bpf_get_current_pid_tgid();

	if (bpf_map_update_elem(&pending, &tid, &p, BPF_ANY))
		lose(ACTIVITY_RING_FULL);
}

/* take_ends returns how many ends of a system call are recorded. */
static __always_inline __u32 take_ends(__u32 number)
{
	__u32 tid = bpf_get_current_pid_tgid(), ends = 0;
	struct pending *p = bpf_map_lookup_elem(&pending, &tid);

	if (!p)
		return 0;
	if (p->number == number && p->start == current_start())
		ends = p->ends;
	bpf_map_delete_elem(&pending, &tid);
	return ends;
}

SEC("raw_tp/sys_enter")
int use_begins(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 args[CALL_ARGUMENTS], number = ctx->args[1];
	struct use use = {};
	struct file_rule *rule;
	struct pt_regs regs;
	__u32 abi, n = 0;
	bool locks = false;

	if (!enabled)
		return 0;
	abi = any_abi_of();
	rule = file_rule_of(number, abi);
	if (!rule || rule->kind >= FILE_OPEN)
		return 0;
	current_ids(&use.ids);
	if (is_own(&use.ids) || bpf_probe_read_kernel(&regs, sizeof(regs), (void *)ctx->args[0]))
		return 0;
	arguments(args, &regs, abi);
	if (rule->kind == FILE_MOVES && rule->reads) {
		use.fd = argument(args, rule->reads);
		use.event = FILE_READS;
		n = send_use(&use);
	}
	if (rule->kind == FILE_FLOCK)
		locks = flock_lock(&use.lock, args);
	else if (rule->kind == FILE_FCNTL)
		locks = fcntl_lock(&use.lock, args, abi);
	use.fd = args[0];
	if (locks)
		use.event = use.lock.type == F_UNLCK ? FILE_UNLOCKS : FILE_LOCKS;
	else
		use.event = FILE_CLOSES;
	if (rule->kind == FILE_MOVES && rule->writes) {
		use.fd = argument(args, rule->writes);
		use.event = FILE_WRITES;
	}
	if (locks || rule->kind == FILE_CLOSE || use.event == FILE_WRITES)
		n += send_use(&use);
	if (n)
		expect_end(number, n);
	return 0;
}

/* own_ends tracks which files the process has open. */
static __always_inline void own_ends(struct file_rule *rule, __u64 *args, __s64 result)
{
	struct files_struct *files = current_files();
	__u32 command = args[1];

	if (result < 0)
		return;
	switch (rule->kind) {
	case FILE_EXEC:
		know_files(files);
		break;
	case FILE_FCNTL:
		if (command != F_DUPFD && command != F_DUPFD_CLOEXEC)
			break;
		/* fall through */
	case FILE_OPEN:
	case FILE_GAIN:
		hold(files, file_of(files, result), result);
		break;
	}
}

SEC("raw_tp/sys_exit")
int use_ends(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 args[CALL_ARGUMENTS], number;
	__s64 result = ctx->args[1];
	__u32 abi, ends;
	struct file_rule *rule;
	struct use use = {};
	struct pt_regs regs;

	if (!enabled || bpf_probe_read_kernel(&regs, sizeof(regs), (void *)ctx->args[0]))
		return 0;
	number = number_of(&regs, (void *)ctx->args[0]);
	abi = any_abi_of();
	rule = file_rule_of(number, abi);
	if (!rule)
		return 0;
	current_ids(&use.ids);
	arguments(args, &regs, abi);
	if (is_own(&use.ids)) {
		own_ends(rule, args, result);
		return 0;
	}
	if (rule->kind == FILE_OPEN && result >= 0) {
		use.fd = result;
		use.event = FILE_OPENED;
		send_open(&use, (void *)argument(args, rule->text));
	}
	if (rule->kind >= FILE_OPEN)
		return 0;
	ends = take_ends(number);
	if (ends > 0)
		send_done(&use.ids, result);
	if (ends > 1)
		send_done(&use.ids, result);
	return 0;
}
