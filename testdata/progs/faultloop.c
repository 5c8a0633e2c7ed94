// SPDX-License-Identifier: Apache-2.0
/*
 * Does nothing but touch memory for the first time, a number of pages of 4 KiB, and give it back.
 * Prints the CPU time that this took.
 */
#include "prog.h"

#include <time.h>

enum { PAGE = 4096, PAGES = 2000 };

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? number(argv[1]) : 100000, done = 0;
	struct timespec used;

	gate();
	while (done < n) {
		char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			die("mmap: %s", strerror(errno));
		madvise(p, PAGES * PAGE, MADV_NOHUGEPAGE);
		for (int i = 0; i < PAGES; i++)
			((volatile char *)p)[i * PAGE] = 1;
		munmap(p, PAGES * PAGE);
		done += PAGES;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	out("{\"pid\":%d,\"pairs\":%lu,\"cpu_ns\":%lu}\n", (int)getpid(), done,
	    (unsigned long)used.tv_sec * 1000000000 + (unsigned long)used.tv_nsec);
	out_flush();
	return 0;
}
