/* SPDX-License-Identifier: Apache-2.0 */
/* How a program looks at its own callers and its own code (harmless.cpp). */
#ifndef HARMLESS_H
#define HARMLESS_H

#include "prog.h"
#include <execinfo.h>
#include <link.h>
#include <new>
#include <string>

static unsigned long look_rounds;

/* quiet discards what the C library prints on standard error. */
static void quiet()
{
	int fd = open("/dev/null", O_WRONLY);

	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		die("no silence");
}

/* A digest of the program's own code. */
static int digest(struct dl_phdr_info *info, size_t, void *sum)
{
	uint64_t *h = (uint64_t *)sum;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const unsigned char *at = (const unsigned char *)(info->dlpi_addr + p->p_vaddr);

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		for (size_t n = 0; n < p->p_memsz; n++)
			*h = (*h ^ at[n]) * 0x100000001b3ULL;
	}
	return 1; /* the program is the first object */
}

static uint64_t own_code()
{
	uint64_t sum = 0xcbf29ce484222325ULL;

	dl_iterate_phdr(digest, &sum);
	return sum;
}

enum { LOOK_DEPTH = 12 };

/*
 * look_back descends, allocates, and compares the result of backtrace with the return addresses
 * that each frame finds for itself.
 */
static NOINLINE unsigned long look_back(void **expect, int depth)
{
	unsigned long right = 0;
	void *p = malloc((size_t)depth + 1);

	expect[depth] = __builtin_return_address(0);
	if (depth + 1 < LOOK_DEPTH) {
		right = look_back(expect, depth + 1);
	} else {
		void *frames[LOOK_DEPTH + 4];
		int n = backtrace(frames, LOOK_DEPTH + 4);

		/* The first frame is look_back itself, the next its caller. */
		for (int i = 0; i < LOOK_DEPTH && i + 1 < n; i++)
			right += frames[i + 1] == expect[LOOK_DEPTH - 1 - i];
	}
	free(p);
	return right;
}

static void look_around()
{
	uint64_t before = own_code();
	unsigned long right = 0;
	int changed = 0;

	for (unsigned long i = 0; i < look_rounds; i++) {
		void *expect[LOOK_DEPTH];

		right += look_back(expect, 0);
		changed += i % 16 == 0 && own_code() != before;
	}
	out("backtrace %lu %d\n", right, changed);
}

#endif /* HARMLESS_H */
