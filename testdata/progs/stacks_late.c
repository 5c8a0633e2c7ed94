// SPDX-License-Identifier: Apache-2.0
/*
 * stacks_late LOG ROUNDS PLUG...: libraries that are loaded and unloaded, logged.
 *
 * After the gate, ROUNDS times for each PLUG in turn (see plugs.c): dlopen, a block of 50000
 * bytes from plug_make, free, dlclose; in the meantime another thread makes blocks of 60000 to
 * 60999 bytes with a function of its own. Then, with the last PLUG open, or without any and with
 * a function of its own, it makes blocks of 20000 to 20999 bytes, one after the other, until a
 * byte comes through the gate; then 500 blocks of 30000 to 30499 bytes. The log of stacklog.h
 * has every call of the allocator, including those of the dynamic loader.
 */
#include "stacklog.h"
#include <poll.h>
#include <pthread.h>

enum { PATIENCE = 100000 }; /* blocks, about ten seconds */

typedef void *(*maker)(size_t n);

static NOINLINE void *own_make(size_t n)
{
	void *p = malloc(n);

	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}

/* use makes a block and frees it. */
static NOINLINE void use(maker make, size_t n)
{
	void *p = make(n);

	__asm__ volatile("" : : "r"(p) : "memory");
	free(p);
}

static void *open_plug(const char *path, maker *make)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library)
		die("dlopen: %s", dlerror());
	*(void **)make = dlsym(library, "plug_make");
	if (!*make)
		die("dlsym: %s", dlerror());
	return library;
}

static NOINLINE void come_and_go(char *const *plugs, int n, unsigned long rounds)
{
	maker make;

	for (; rounds > 0; rounds--) {
		int i;

		for (i = 0; i < n; i++) {
			void *library = open_plug(plugs[i], &make);

			use(make, 50000);
			dlclose(library);
		}
	}
}

/* bystander makes blocks as long as libraries are loaded and unloaded, which must not affect it. */
static void *bystander(void *arg)
{
	volatile int *going = (volatile int *)arg;
	struct timespec moment = { .tv_nsec = 20000 };
	size_t i = 0;

	/* At least once, however late the thread starts. */
	do {
		use(own_make, 60000 + i++ % 1000);
		nanosleep(&moment, NULL);
	} while (*going);
	return NULL;
}

/* let_go reports whether the second byte has arrived, and waits a moment for it. */
static int let_go(void)
{
	struct pollfd gate_go = { .fd = GATE_GO, .events = POLLIN };
	struct timespec moment = { .tv_nsec = 50000 };

	if (!is_gate(GATE_GO, O_RDONLY))
		return 1;
	if (ppoll(&gate_go, 1, &moment, NULL) <= 0)
		return 0;
	if (!read_byte(GATE_GO))
		_exit(98);
	return 1;
}

int main(int argc, char **argv)
{
	maker make = own_make;
	unsigned long rounds, i;

	if (argc < 3)
		die("usage: stacks_late LOG ROUNDS PLUG...");
	rounds = number(argv[2]);
	stacklog_open(argv[1]);
	gate();
	if (argc > 3) {
		static volatile int going = 1;
		pthread_t other;

		if (pthread_create(&other, NULL, bystander, (void *)&going))
			die("no thread");
		come_and_go(argv + 3, argc - 3, rounds);
		going = 0;
		pthread_join(other, NULL);
		(void)open_plug(argv[argc - 1], &make);
	}
	for (i = 0; !let_go(); i++) {
		if (i == PATIENCE)
			die("never let go");
		use(make, 20000 + i % 1000);
	}
	for (i = 0; i < 500; i++)
		use(make, 30000 + i);
	_exit(0);
}
