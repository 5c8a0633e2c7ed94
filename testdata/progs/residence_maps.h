/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of the program residence: each function makes one that stays until the end. */
#ifndef RESIDENCE_MAPS_H
#define RESIDENCE_MAPS_H

#include "prog.h"

enum { MIB = 1 << 20 };

static volatile int sink; /* what was read */

static void touch(const char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i += 4096)
		sink = p[i];
}

static void file(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *p;

	if (fd < 0 || fstat(fd, &st) != 0)
		die("cannot open %s", path);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("cannot map %s", path);
	touch(p, (size_t)st.st_size);
	out("file %lu\n", (unsigned long)st.st_size);
}

static void shared(unsigned long mib)
{
	int fd = memfd_create("residence", MFD_CLOEXEC);
	char *p;

	if (fd < 0 || ftruncate(fd, (off_t)(mib * MIB)) != 0)
		die("no shared memory");
	p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("cannot map shared memory");
	memset(p, 1, mib * MIB);
}

static void huge(unsigned long mib)
{
	enum { HUGE = 2 * MIB };
	char *p = mmap(NULL, mib * MIB + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		die("no memory");
	p += -(uintptr_t)p % HUGE;
	if (madvise(p, mib * MIB, MADV_HUGEPAGE) != 0)
		die("no transparent huge pages");
	memset(p, 1, mib * MIB);
}

static void hugetlb(unsigned long mib)
{
	char *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		die("no pages of hugetlbfs");
	memset(p, 1, mib * MIB);
}

static void mapped(unsigned long mib)
{
	char *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("no memory");
	memset(p, 1, mib * MIB);
}

static void sparse(unsigned long mappings)
{
	const size_t size = (size_t)1 << (sizeof(size_t) == 8 ? 39 : 24), guard = 4096;
	unsigned long i;

	for (i = 0; i < mappings; i++) {
		char *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			       -1, 0);

		if (p == MAP_FAILED || mprotect(p + guard, size - guard, PROT_READ | PROT_WRITE))
			die("no addresses");
		p[size / 2] = 1;
	}
}

#endif
