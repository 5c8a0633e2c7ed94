// SPDX-License-Identifier: Apache-2.0
/*
 * dl PLUG N [wait]: a library that is loaded for about a millisecond, N times.
 *
 * After the gate, N times: dlopen(PLUG), call its plug_leak(100 + i), which makes
 * malloc(100 + i), and dlclose it at once. N blocks are left. The calls of plug_leak are
 * logged; the dynamic loader's own calls are not. With wait, it passes the gate once more
 * after the first call, while the library is loaded.
 */
#include "prog.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
	static struct ledger l;
	unsigned long n, i;

	if (argc < 3)
		die("usage: dl PLUG N [wait]");
	n = number(argv[2]);
	l.tid = thread_id();
	ledger_open(&l, n);
	gate();
	for (i = 0; i < n; i++) {
		void *library = dlopen(argv[1], RTLD_NOW);
		void *(*leak)(size_t);

		if (!library)
			die("dlopen: %s", dlerror());
		leak = (void *(*)(size_t))dlsym(library, "plug_leak");
		if (!leak)
			die("dlsym: %s", dlerror());
		note_new(&l, FN_MALLOC, leak(100 + i), 100 + i);
		if (i == 0 && argc > 3)
			gate();
		dlclose(library);
	}
	report(&l, 1, "");
	_exit(0);
}
