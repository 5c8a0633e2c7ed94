// SPDX-License-Identifier: Apache-2.0
/*
 * mapcode N [FILE]: executable mappings that appear and disappear, each of which makes the
 * kernel write a record for tracers that watch mappings.
 *
 * After the gate, on one processor: N times a page of its own program is mapped executable
 * and unmapped; with 0 endlessly. Then, if FILE is given, FILE is mapped executable and
 * stays, and the thread names itself "mapped". It waits at a second gate, and then ends.
 */
#include "prog.h"
#include <sched.h>
#include <sys/prctl.h>

static void *map_code(const char *path, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p;

	if (fd < 0)
		die("cannot read %s", path);
	p = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		die("cannot map %s", path);
	close(fd);
	return p;
}

int main(int argc, char **argv)
{
	unsigned long n, i;
	cpu_set_t one;

	if (argc < 2)
		die("usage: mapcode N [FILE]");
	n = number(argv[1]);
	gate();
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		die("cannot stay on one processor");
	for (i = 0; n == 0 || i < n; i++)
		if (munmap(map_code("/proc/self/exe", 4096), 4096))
			die("cannot unmap");
	if (argc > 2) {
		map_code(argv[2], 4096);
		if (prctl(PR_SET_NAME, "mapped", 0, 0, 0))
			die("no name");
	}
	gate();
	_exit(0);
}
