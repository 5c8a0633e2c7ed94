/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading of the user's stack, a piece at a time. */
#ifndef RTRACE_WINDOW_H
#define RTRACE_WINDOW_H

#include "state.h"

/* The smallest page size. Where pages are larger, copies are sometimes cut short. */
#define PAGE 4096

/*
 * move_window copies length bytes from addr, or what there is up to the end of the stack. A copy
 * that crosses that end fails as a whole and is slow, so the end is remembered from it.
 */
VERIFIED_ONCE int move_window(struct thread *t, __u64 addr, __u32 length)
{
	struct window *w;

	if (!t)
		return 0;
	w = &t->window;
	w->base = addr;
	if (w->top > addr && w->top - addr < length)
		length = w->top - addr;
	/* The helper's length is 32 bits, and verifiers before 5.11 drop bounds of the whole. */
	asm volatile("" : "+r"(length));
	if (length > WINDOW_BYTES)
		length = WINDOW_BYTES;
	w->length = length;
	if (likely(!bpf_probe_read_user(w->words, length, (void *)addr)))
		return 0;
	w->top = (addr | (PAGE - 1)) + 1;
	length = w->top - addr;
	if (length >= w->length || bpf_probe_read_user(w->words, length & (PAGE - 1), (void *)addr))
		length = 0;
	w->length = length;
	return 0;
}

/* forget_window empties the window, which will begin at sp. */
static __always_inline void forget_window(struct thread *t, __u64 sp)
{
	t->window.base = sp;
	t->window.length = 0;
}

/* word_at returns a word of the window; at is in bytes. */
static __always_inline __u64 word_at(struct thread *t, __u64 at)
{
	return *(word *)((__u8 *)t->window.words + at);
}

/* read_alone reads a far word that may stay in the stack cache. */
static __always_inline bool read_alone(struct thread *t, __u64 addr, __u64 *value)
{
	__u64 at = addr - t->walk.first_sp;
	__u32 n = t->walk.fars;

	/* Keeps clang from checking one copy and using another. */
	asm volatile("" : "+r"(n));
	if (at < WINDOW_BYTES || at >= FAR_LIMIT || n >= MAX_FAR)
		return false;
	if (read_user(value, (void *)addr))
		return false;
	t->walk.far_at[n] = at;
	t->walk.far_value[n] = *value;
	t->walk.fars = n + 1;
	return true;
}

/* read_far reads a word that is not in the window, and moves the window there if that is ahead. */
VERIFIED_ONCE bool read_far(struct thread *t, __u64 addr, __u64 *value)
{
	struct window *w;
	__u64 at;

	if (!t || !value)
		return false;
	w = &t->window;
	if (w->base == t->walk.first_sp) {
		if (w->beyond <= MAX_FAR && read_alone(t, addr, value))
			return true;
		/* The stack is longer than the previous one. */
		at = addr - w->base;
		if (at < WINDOW_BYTES && !(at & ODD)) {
			move_window(t, w->base, WINDOW_BYTES);
			if (at < w->length && at <= WINDOW_BYTES - sizeof(word)) {
				*value = word_at(t, at);
				return true;
			}
		}
	}
	t->walk.uncached = 1;
	if (!(addr & ODD) && addr - w->base >= w->length && addr > w->base) {
		move_window(t, addr, WINDOW_BYTES);
		*value = w->words[0];
		return w->length > 0;
	}
	return !read_user(value, (void *)addr);
}

/* read_word reads a word of the user's stack. */
static __always_inline bool read_word(struct thread *t, __u64 addr, __u64 *value)
{
	__u64 at = addr - t->window.base;

	if (likely(at < t->window.length && !(at & ODD))) {
		at /= sizeof(word);
		if (likely(at < WINDOW_WORDS)) {
			*value = t->window.words[at];
			return true;
		}
	}
	return read_far(t, addr, value);
}

/* keep_extra records that the word at addr decides how the stack continues. */
static __always_inline void keep_extra(struct thread *t, __u64 addr)
{
	__u64 at = addr - t->walk.first_sp;
	__u32 n = t->walk.extras;

	/* Keeps clang from checking one copy and using another. */
	asm volatile("" : "+r"(n));
	if (at < WINDOW_BYTES && n < MAX_EXTRA) {
		t->walk.extra[n] = at;
		t->walk.extras = n + 1;
	} else if (at < WINDOW_BYTES || at >= FAR_LIMIT) {
		t->walk.uncached = 1;
	}
}

/* read_extra reads a word that decides how the stack continues. */
static __always_inline bool read_extra(struct thread *t, __u64 addr, __u64 *value)
{
	keep_extra(t, addr);
	return read_word(t, addr, value);
}

#endif
