/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks that were unwound recently. A stack is determined by the address, the stack pointer,
 * sometimes the frame pointer, and the few words of memory that unwinding read. If all of them
 * are unchanged, the stack is the same: this is not a guess.
 */
#ifndef RTRACE_STACK_CACHE_H
#define RTRACE_STACK_CACHE_H

#include "unwind.h"

#define CACHE_SETS 1024
#define CACHE_WAYS 4
#define CACHE_SLOTS (MAX_SLOTS + MAX_EXTRA)

/*
 * A lookup costs about half of what a hit saves. So a thread that finds less than a third of its
 * stacks looks up only one in eight, until it finds some again.
 */
#define HIT_LUCK 2
#define MAX_LUCK 64
#define UNLUCKY_TURNS 8

struct cached_stack {
	__u32 version; /* odd while the entry is being written; changes with each write */
	__u32 written; /* 1: a program is writing */
	__u64 pc, sp, fp;
	__u64 epoch; /* of the mappings, and so of the process */
	__u64 hash;
	__u32 length; /* bytes of stack that contain the slots */
	__u32 fars;
	__u32 far_at[MAX_FAR];
	__u64 far_value[MAX_FAR];
	__u16 slots;
	__u16 fp_needed;
	__u16 slot[CACHE_SLOTS]; /* in bytes from sp */
	__u64 value[CACHE_SLOTS];
};

struct cache_set {
	struct cached_stack ways[CACHE_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CACHE_SETS);
	__type(key, __u32);
	__type(value, struct cache_set);
} stack_cache SEC(".maps");

#ifndef BOUNDED

#define BARRIER() asm volatile("" : : : "memory")

/* An atomic operation whose result is used orders everything before and after it. */
static __always_inline __u32 ordered_add(__u32 *to, __u32 n)
{
	__u32 old = __sync_fetch_and_add(to, n);

	asm volatile("" : "+r"(old) : : "memory");
	return old;
}

/* read_version reads the version, ordered before and after the rest of the entry. */
static __always_inline __u32 read_version(struct cached_stack *e)
{
#if defined(__TARGET_ARCH_x86)
	__u32 version;

	/* x86 keeps loads in order. */
	BARRIER();
	version = *(volatile __u32 *)&e->version;
	BARRIER();
	return version;
#else
	return ordered_add(&e->version, 0);
#endif
}

static __always_inline struct cache_set *find_set(struct thread *t, __u64 pc, __u64 sp)
{
	__u32 key = mix(t->target.epoch, pc ^ sp << 16) % CACHE_SETS;

	return bpf_map_lookup_elem(&stack_cache, &key);
}

#define LAST_WORD (WINDOW_BYTES - sizeof(word))

static __always_inline bool same_far_words(struct cached_stack *e)
{
	__u32 n = e->fars;

	for (__u32 i = 0; i < MAX_FAR && i < n; i++) {
		void *addr = (void *)(e->sp + e->far_at[i]);
		__u64 value = 0;

		if (read_user(&value, addr) || value != e->far_value[i])
			return false;
	}
	return true;
}

/* same_words reports whether the slots of an entry still have the same values. */
VERIFIED_ONCE int same_words(struct thread *t, struct cached_stack *e)
{
	__u64 differ = 0;
	__u32 n;

	if (!t || !e)
		return false;
	n = e->slots;
	for (__u32 i = 0; i < CACHE_SLOTS && i < n; i++) {
		__u32 at = e->slot[i];

		if (at > LAST_WORD)
			return false;
		differ |= word_at(t, at) ^ e->value[i];
	}
	if (differ)
		return false;
	return same_far_words(e);
}

/* match returns the hash of the entry's stack if it is the one that begins here, else 0. */
VERIFIED_ONCE __u64 match(struct thread *t, struct cached_stack *e, __u64 pc, __u64 fp, __u64 sp)
{
	__u32 version, length;
	__u64 hash;

	if (!t || !e)
		return 0;
	version = read_version(e);
	if (version & 1 || e->pc != pc || e->sp != sp || e->epoch != t->target.epoch ||
	    (e->fp_needed && e->fp != fp))
		return 0;
	length = e->length;
	hash = e->hash;
	if (t->window.length < length)
		move_window(t, sp, length > t->window.span ? length : t->window.span);
	if (t->window.length < length || !same_words(t, e) || read_version(e) != version)
		return 0;
	return hash;
}

/* find_stack returns the hash of a cached stack, or 0. */
VERIFIED_ONCE __u64 find_stack(struct thread *t, __u64 pc, __u64 fp, __u64 sp)
{
	struct cache_set *set;
	__u64 hash;

	if (!t)
		return 0;
	if (!t->luck && ++t->turn % UNLUCKY_TURNS)
		return 0;
	t->turn = 0;
	set = find_set(t, pc, sp);
	if (!set)
		return 0;
	for (__u32 i = 0; i < CACHE_WAYS; i++) {
		struct cached_stack *e = &set->ways[i];

		if (e->pc != pc || e->sp != sp)
			continue;
		hash = match(t, e, pc, fp, sp);
		if (hash) {
			if (t->luck < MAX_LUCK)
				t->luck += HIT_LUCK;
			return hash;
		}
	}
	if (t->luck)
		t->luck--;
	return 0;
}

/* keep_word makes the word at an offset the entry's next slot. */
static __always_inline void keep_word(struct thread *t, struct cached_stack *e, __u32 at)
{
	__u32 n = e->slots;

	asm volatile("" : "+r"(n));
	if (n >= CACHE_SLOTS || at > LAST_WORD) {
		e->pc = 0; /* not a valid stack: something that decides it is missing */
		return;
	}
	e->slot[n] = at;
	e->value[n] = word_at(t, at);
	e->slots = n + 1;
	if (at + sizeof(word) > e->length)
		e->length = at + sizeof(word);
}

struct keeping {
	struct thread *t;
	struct cached_stack *e;
};

/* keep_frame keeps what decided the frame after frame n. */
static long keep_frame(__u64 n, struct keeping *k)
{
	__u32 slot, at;

	if (n >= MAX_SLOTS - 1 || n + 1 >= k->t->walk.depth)
		return STOP;
	slot = k->t->walk.slot[n + 1];
	at = slot & ~SLOT_PAIR;
	if (at == SLOT_FAR)
		return GO_ON; /* it is among the far words */
	keep_word(k->t, k->e, at);
	if (at != slot)
		keep_word(k->t, k->e, at - sizeof(word));
	return GO_ON;
}

/* keep_other keeps what was read besides the frames. */
static long keep_other(__u64 n, struct keeping *k)
{
	if (n >= MAX_EXTRA || n >= k->t->walk.extras)
		return STOP;
	keep_word(k->t, k->e, k->t->walk.extra[n]);
	return GO_ON;
}

/* keep_words copies what decided the stack to an entry. */
VERIFIED_ONCE int keep_words(struct thread *t, struct cached_stack *e)
{
	struct keeping k;

	if (!t || !e)
		return 0;
	k.t = t;
	k.e = e;
	e->slots = 0;
	e->length = 0;
	take_turns(MAX_SLOTS - 1, keep_frame, &k);
	take_turns(MAX_EXTRA, keep_other, &k);
	e->fars = t->walk.fars;
	for (__u32 i = 0; i < MAX_FAR && i < t->walk.fars; i++) {
		e->far_at[i] = t->walk.far_at[i];
		e->far_value[i] = t->walk.far_value[i];
	}
	return 0;
}

/* keep_stack enters the stack that was just unwound. */
VERIFIED_ONCE int keep_stack(struct thread *t, __u64 pc, __u64 fp, __u64 sp)
{
	struct cached_stack *e;
	struct cache_set *set;

	if (!t || t->turn || t->walk.uncached || t->window.base != sp)
		return 0;
	set = find_set(t, pc, sp);
	if (!set)
		return 0;
	e = &set->ways[t->stack.hash % CACHE_WAYS];
	/* A second writer gives up. */
	if (__sync_lock_test_and_set(&e->written, 1))
		return 0;
	ordered_add(&e->version, 1);
	e->pc = pc;
	e->sp = sp;
	e->fp = fp;
	e->fp_needed = t->walk.fp_needed;
	e->epoch = t->target.epoch;
	e->hash = t->stack.hash;
	keep_words(t, e);
	ordered_add(&e->version, 1);
	__sync_lock_test_and_set(&e->written, 0);
	return 0;
}

#else

/* The entries' lock needs atomic operations that kernels without bpf_loop may lack. */
static __always_inline __u64 find_stack(struct thread *t, __u64 pc, __u64 fp, __u64 sp)
{
	return 0;
}

static __always_inline void keep_stack(struct thread *t, __u64 pc, __u64 fp, __u64 sp) {}

#endif
#endif
