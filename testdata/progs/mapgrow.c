// SPDX-License-Identifier: Apache-2.0
/*
 * mapgrow MIB: after the gate it maps MIB MiB, touches each page of them, and keeps one block
 * of 1000 bytes from malloc. After the next gate it ends.
 */
#include "prog.h"

int main(int argc, char **argv)
{
	static struct ledger l;
	size_t size;
	char *p;

	if (argc != 2)
		die("usage: mapgrow MIB");
	size = (size_t)number(argv[1]) << 20;
	l.tid = thread_id();
	ledger_open(&l, 1);
	gate();
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		die("mmap");
	memset(p, 1, size);
	do_malloc(&l, 1000);
	gate();
	report(&l, 1, "");
	_exit(0);
}
