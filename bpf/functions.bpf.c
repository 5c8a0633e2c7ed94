// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls of functions that the user names: when a thread enters one and with which arguments, when
 * it leaves it and with what result, and values at places in the code. The tracer, which gets all
 * events of a thread in order, finds out what belongs together. The programs keep no state about
 * nesting from one event to the next, so no depth of calls is too much.
 *
 * Needs Linux 5.10. Without attach cookies each site has its own copy of a program.
 */
#include "call_memory.h"
#include "follow.h"
#include "measure.h"
#include "rings.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Keeps the types in the object's debug information, for the generated Go types. */
const struct call_entry *unused_entry __attribute__((unused));
const struct call_exit *unused_exit __attribute__((unused));
const struct call_text *unused_text __attribute__((unused));
const struct call_value *unused_value __attribute__((unused));
const enum call_kind *unused_kind __attribute__((unused));
const enum call_loss *unused_loss __attribute__((unused));
const enum call_stack *unused_stack __attribute__((unused));

/* Settings, fixed before the programs are loaded. */
volatile const __u32 cfg_pid = 0; /* the process, in the tracer's PID namespace */
volatile const bool cfg_pid_namespace = false; /* the tracer is not in the initial one */
volatile const __u64 cfg_pidns_dev = 0;
volatile const __u64 cfg_pidns_ino = 0;
volatile const bool cfg_cookies = true; /* otherwise cfg_site is the site */
volatile const __u32 cfg_site = 0;

/* The only value is 1 while calls are recorded. Copies of the programs share it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} switches SEC(".maps");

/* By site number. The tracer adds a site when it attaches its probe. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SITES);
	__type(key, __u32);
	__type(value, struct call_site);
} sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CALL_LOSS_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} losses SEC(".maps");

static __always_inline void lose(__u32 reason)
{
	__u64 *n = bpf_map_lookup_elem(&losses, &reason);

	/* Atomic although per CPU: another program may preempt this one. */
	if (n)
		__sync_fetch_and_add(n, 1);
}

/*
 * The programs that record the stack of a call, from rtrace.bpf.c, by enum call_stack. They run
 * last, so a stack directly follows its event.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, CALL_STACK_AFTER + 1);
	__type(key, __u32);
	__type(value, __u32);
} stackers SEC(".maps");

/* current_thread returns the thread ID, 0 if the thread is not recorded. */
static __always_inline __u32 current_thread(void)
{
	__u32 zero = 0, *on = bpf_map_lookup_elem(&switches, &zero);
	__u64 ids = bpf_get_current_pid_tgid();
	struct bpf_pidns_info inner;

	if (!on || !*on)
		return 0;
	if (cfg_pid_namespace) {
		if (bpf_get_ns_current_pid_tgid(cfg_pidns_dev, cfg_pidns_ino, &inner,
						sizeof(inner)))
			return 0;
		ids = (__u64)inner.tgid << 32 | inner.pid;
	}
	return ids >> 32 == cfg_pid ? (__u32)ids : 0;
}

static __always_inline __u32 site_number(void *ctx)
{
	return cfg_cookies ? (__u32)bpf_get_attach_cookie(ctx) : cfg_site;
}

static __always_inline void *reserve(__u64 size)
{
	void *ring = cpu_ring(), *record = NULL;

	if (ring)
		record = bpf_ringbuf_reserve(ring, size, 0);
	if (!record)
		lose(CALL_RING_FULL);
	return record;
}

static __always_inline void fill(struct call_head *h, __u8 kind, __u32 tid, __u32 site, __u64 slot)
{
	h->slot = slot;
	h->tid = tid;
	h->site = site;
	h->kind = kind;
	h->unread = 0;
	h->time = bpf_ktime_get_ns();
}

/* send_entry sends an entry with the given number of texts. */
static __always_inline void send_entry(struct pt_regs *ctx, __u32 tid, __u32 number,
				       struct call_site *site, __u32 texts)
{
	struct call_entry *e = reserve(ENTRY_SIZE(texts));
	__u64 slot = narrow(REG_SP(ctx));
	__u8 unread = 0;

	if (!e)
		return;
#pragma unroll
	for (int i = 0; i < CALL_WORDS; i++) {
		__u64 word = 0;

		if (i < REGISTER_WORDS)
			word = register_word(ctx, i);
		else if (i < site->words && read_word(&word, STACK_WORD(slot, i - REGISTER_WORDS)))
			word = 0;
		e->words[i] = word;
	}
	if (site->follow)
		follow_word(e, site);
	if (cfg_measures && !texts && site->measure)
		measure_word(e, site);
	for (__u32 i = 0; i < texts; i++) {
		__u32 from = site->text[i];

		if (from & TEXT_COUNTED ? read_counted(e->text[i], e->words, from & ~TEXT_COUNTED)
					: read_text(e->text[i], e->words, from))
			unread |= 1 << i;
	}
	if (unread && site->again)
		keep_unread(e, site, unread, tid, slot);
	if (site->out)
		keep_out(e->words, site->out, tid, slot);
	e->pc = narrow(REG_PC(ctx)) - site->back;
	e->caller = caller_of(ctx, slot);
	fill(&e->head, CALL_ENTERED, tid, number, slot);
	e->head.unread = unread;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/*
 * hit_site returns the site of this hit, its number and the thread, or NULL if the thread is not
 * traced.
 */
static __always_inline struct call_site *hit_site(struct pt_regs *ctx, __u32 *tid, __u32 *number)
{
	*tid = current_thread();
	*number = site_number(ctx);
	return *tid ? bpf_map_lookup_elem(&sites, number) : NULL;
}

SEC("uprobe/entered")
int entered(struct pt_regs *ctx)
{
	__u32 tid, number;
	struct call_site *site = hit_site(ctx, &tid, &number);

	if (!site)
		return 0;
	if (site->texts == 0)
		send_entry(ctx, tid, number, site, 0);
	else if (site->texts == 1)
		send_entry(ctx, tid, number, site, 1);
	else if (site->texts == 2)
		send_entry(ctx, tid, number, site, 2);
	else
		send_entry(ctx, tid, number, site, CALL_TEXTS);
	if (site->stack)
		bpf_tail_call(ctx, &stackers, site->stack);
	return 0;
}

/*
 * send_exit sends a return with the given number of bytes: none, those of a text, a word that the
 * result leads to, or what the call wrote.
 */
static __always_inline void send_exit(struct pt_regs *ctx, __u32 tid, __u32 number, __u64 slot,
				      struct call_site *site, __u32 bytes)
{
	struct call_exit *e = reserve(EXIT_SIZE(bytes));
	__u64 result = narrow(REG_RET(ctx));
	bool unread = false;

	if (!e)
		return;
	e->result = result;
	if (bytes == TEXT_BYTES) {
		e->text[0] = 0;
		unread = bpf_probe_read_user_str(e->text, TEXT_BYTES, (void *)result) < 0;
	} else if (bytes == sizeof(__u64)) {
		*(__u64 *)e->text = follow(site, result);
	} else if (bytes) {
		unread = read_out(e->text, site, tid, slot) != 0;
	}
	fill(&e->head, CALL_LEFT, tid, number, slot);
	e->head.unread = unread;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* send_unread sends the texts of a call that could not be read at its entry. */
static __always_inline void send_unread(__u32 tid, __u32 number, __u64 slot)
{
	struct out_key key = { .slot = slot, .tid = tid };
	struct unread *u = bpf_map_lookup_elem(&unreads, &key);

	if (!u)
		return;
#pragma unroll
	for (int i = 0; i < CALL_TEXTS; i++) {
		__u64 from = u->from[i];
		struct call_text *t;

		if (!from)
			continue;
		t = reserve(sizeof(*t));
		if (!t)
			break;
		t->number = i;
		t->reserved = 0;
		t->text[0] = 0;
		from = bpf_probe_read_user_str(t->text, TEXT_BYTES, (void *)from) < 0;
		fill(&t->head, CALL_TEXT, tid, number, slot);
		t->head.unread = from;
		bpf_ringbuf_submit(t, BPF_RB_NO_WAKEUP);
	}
	bpf_map_delete_elem(&unreads, &key);
}

/* left runs at the return instructions of functions, or after their return. */
SEC("uprobe/left")
int left(struct pt_regs *ctx)
{
	__u32 tid, number;
	struct call_site *site = hit_site(ctx, &tid, &number);
	__u64 slot;

	if (!site)
		return 0;
	slot = narrow(REG_SP(ctx));
	if (site->popped)
		slot -= RETURN_POP / 8 * WORD_BYTES;
	if (site->again)
		send_unread(tid, number, slot);
	if (site->texts)
		send_exit(ctx, tid, number, slot, site, TEXT_BYTES);
	else if (site->size)
		send_exit(ctx, tid, number, slot, site, OUT_BYTES);
	else if (site->follow)
		send_exit(ctx, tid, number, slot, site, sizeof(__u64));
	else
		send_exit(ctx, tid, number, slot, site, 0);
	if (site->stack)
		bpf_tail_call(ctx, &stackers, site->stack);
	return 0;
}

/* find_value returns where a value is, or the value itself; failed reports that it was not
 * reached. */
static __always_inline __u64 find_value(struct pt_regs *ctx, struct call_site *site, bool *failed)
{
	__u64 at = any_register(ctx, site->from);

	*failed = false;
	for (int i = 0; i < VALUE_STEPS; i++) {
		if (i >= site->steps)
			break;
		at = narrow(at + site->add[i]);
		if (i + 1 < site->steps && read_word(&at, at)) {
			*failed = true;
			break;
		}
	}
	return at;
}

/* send_value sends a value of at most room bytes. */
static __always_inline void send_value(struct pt_regs *ctx, __u32 tid, __u32 number,
				       struct call_site *site, __u32 room)
{
	struct call_value *v = reserve(sizeof(*v) - VALUE_BYTES + room);
	__u32 size = site->size;
	bool failed;
	__u64 at;

	if (!v)
		return;
	at = find_value(ctx, site, &failed);
	if (!site->steps) {
		*(__u64 *)v->data = at;
	} else if (!failed) {
		asm volatile("" : "+r"(size));
		if (size > room)
			size = room;
		failed = bpf_probe_read_user(v->data, size, (void *)at);
	}
	v->pc = narrow(REG_PC(ctx));
	fill(&v->head, CALL_VALUE, tid, number, narrow(REG_SP(ctx)));
	v->head.unread = failed;
	bpf_ringbuf_submit(v, BPF_RB_NO_WAKEUP);
}

/* looked runs where a value is read. */
SEC("uprobe/looked")
int looked(struct pt_regs *ctx)
{
	__u32 tid, number;
	struct call_site *site = hit_site(ctx, &tid, &number);

	if (!site)
		return 0;
	if (site->size <= VALUE_SMALL)
		send_value(ctx, tid, number, site, VALUE_SMALL);
	else
		send_value(ctx, tid, number, site, VALUE_BYTES);
	return 0;
}
