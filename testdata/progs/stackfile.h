/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log of calls with their stacks. It is a mapped file, so that writing needs no allocation and
 * what is written stays when the program dies. It consists of 64-bit words: first the number of
 * words in use, including this one, then entries of
 *
 *	words of this entry, including this one
 *	thread ID
 *	operation, as enum op in prog.h
 *	old block, freed or moved
 *	new block
 *	requested size, 0 for a free
 *	return addresses, the innermost first
 *
 * The first address is anywhere in the function that called the allocator; the others are what
 * any unwinder must find at the call. Entries of one thread are in the order of its calls. A
 * call that fails is not logged.
 */
#ifndef STACKFILE_H
#define STACKFILE_H

#include "prog.h"

enum {
	LOG_HEAD_WORDS = 6,
	LOG_BYTES = 256 << 20, /* of address space; the file is sparse */
};

static uint64_t *log_words; /* NULL: nothing is logged */
static __thread pid_t log_tid;

static __attribute__((unused)) void log_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *p;

	if (fd < 0 || ftruncate(fd, LOG_BYTES))
		die("cannot make the log %s", path);
	p = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("cannot map the log %s", path);
	close(fd);
	log_words = (uint64_t *)p;
	log_words[0] = 1;
}

/* log_add adds an entry with n frames. */
static ALWAYS_INLINE void log_add(enum op op, uintptr_t old, uintptr_t ptr, size_t size,
				  void *const *frames, size_t n)
{
	uint64_t *to, words = LOG_HEAD_WORDS + n;
	size_t i;

	if (!log_tid)
		log_tid = thread_id();
	to = log_words + __atomic_fetch_add(&log_words[0], words, __ATOMIC_RELAXED);
	if (to + words > log_words + LOG_BYTES / sizeof(*to))
		die("the log is full");
	to[0] = words;
	to[1] = (uint64_t)log_tid;
	to[2] = op;
	to[3] = old;
	to[4] = ptr;
	to[5] = size;
	for (i = 0; i < n; i++)
		to[LOG_HEAD_WORDS + i] = (uintptr_t)frames[i];
}

#endif /* STACKFILE_H */
