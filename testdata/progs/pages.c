// SPDX-License-Identifier: Apache-2.0
/*
 * pages: memory of all kinds that does not change.
 *
 * Before the gate it maps and locks an area of PAGES pages, writes to every third one, and
 * maps an area of its own program's file; after the gate it allocates some blocks and waits
 * at the gate again.
 *
 * Output: "START END" of the area, in hexadecimal.
 */
#include "prog.h"

enum { PAGES = 600 };

int main(int argc, char **argv)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), i;
	char *area = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	int fd = open(argv[0], O_RDONLY);
	char *file = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);

	(void)argc;
	if (area == MAP_FAILED || file == MAP_FAILED || file[0] != 0x7f)
		die("no memory");
	if (mlock(area, PAGES * page) != 0)
		die("the memory cannot be locked");
	for (i = 0; i < PAGES; i += 3)
		area[i * page + 7] = 1;
	gate();
	for (i = 0; i < 100; i++)
		if (!malloc(1000 + i))
			die("no memory");
	gate();
	out("%lx %lx\n", (unsigned long)(uintptr_t)area,
	    (unsigned long)(uintptr_t)(area + PAGES * page));
	out_flush();
	return 0;
}
