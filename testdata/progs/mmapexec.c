// SPDX-License-Identifier: Apache-2.0
/*
 * mmapexec FILE N: executable mappings without the dynamic loader.
 *
 * After the gate, N times (at most 100): map the whole FILE with PROT_READ and PROT_EXEC,
 * make malloc(64), whose block is kept, and remove the mapping again, except the last one.
 * The JSON lists the mappings under "maps".
 */
#include "prog.h"

enum { MOST = 100 };

int main(int argc, char **argv)
{
	static struct ledger l;
	static char more[MOST * 50 + 16];
	struct stat st;
	unsigned long n, i;
	size_t length = 0;
	int fd;

	if (argc < 3)
		die("usage: mmapexec FILE N");
	n = number(argv[2]);
	if (n > MOST)
		die("more than %d mappings", MOST);
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		die("cannot read %s", argv[1]);
	l.tid = thread_id();
	ledger_open(&l, n);
	length = (size_t)snprintf(more, sizeof(more), "\"maps\":[");
	gate();
	for (i = 0; i < n; i++) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		if (p == MAP_FAILED)
			die("cannot map %s", argv[1]);
		do_malloc(&l, 64);
		length += (size_t)snprintf(more + length, sizeof(more) - length,
					   "%s{\"start\":%llu,\"size\":%llu}", i ? "," : "",
					   (unsigned long long)(uintptr_t)p,
					   (unsigned long long)st.st_size);
		if (i + 1 < n)
			munmap(p, (size_t)st.st_size);
	}
	snprintf(more + length, sizeof(more) - length, "]");
	report(&l, 1, more);
	_exit(0);
}
