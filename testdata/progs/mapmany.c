// SPDX-License-Identifier: Apache-2.0
/*
 * mapmany TIMES PAIRS FILE...: executable mappings that are there from the start.
 *
 * Before the gate it maps the first page of each FILE TIMES times with PROT_READ and
 * PROT_EXEC. The mappings stay. After the gate it makes PAIRS times malloc(100) and free of
 * the block.
 */
#include "prog.h"

static struct ledger l;

static void map(const char *path, unsigned long times)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("cannot open %s", path);
	while (times-- > 0)
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			die("cannot map %s", path);
	close(fd);
}

int main(int argc, char **argv)
{
	unsigned long times, pairs, i;
	int n;

	if (argc < 3)
		die("usage: mapmany TIMES PAIRS FILE...");
	times = number(argv[1]);
	pairs = number(argv[2]);
	for (n = 3; n < argc; n++)
		map(argv[n], times);
	l.tid = thread_id();
	ledger_open(&l, 2 * pairs);
	gate();
	for (i = 0; i < pairs; i++)
		do_free(&l, do_malloc(&l, 100));
	report(&l, 1, "");
	_exit(0);
}
