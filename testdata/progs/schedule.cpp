// SPDX-License-Identifier: Apache-2.0
/*
 * schedule SEED THREADS OPERATIONS END [PLUG]: a program that does everything that can be done
 * with an allocator, chosen by SEED.
 *
 * After the gate each of THREADS threads makes OPERATIONS operations of schedule_ops.h: blocks
 * of their own and of each other, of all sizes, with all functions of the allocator, with and
 * without success. One in a hundred is an operation of schedule_ways.h: longjmp, siglongjmp
 * out of a handler, exceptions, threads that end, are left and are cancelled, a library (PLUG)
 * that is loaded and unloaded. One in ten thousand, but at least one of each thread, is another
 * process: by fork, vfork, or posix_spawn.
 *
 * END is how it ends: return, exit, _exit, quick_exit, abort, kill, segv, thread (by
 * pthread_exit of the main thread, with the others ending last), running (by _exit while the
 * threads continue), exec (it executes "schedule SEED+1 … return", which has no gate: EXECUTED
 * is in its environment), or threadexec (a thread other than the main one does the same while
 * others continue).
 *
 * It keeps no log. Its output does not matter.
 */
#include "schedule_ways.h"

static unsigned long seed, threads, operations;
static const char *end;
static int goes_on; /* threads do not end */
static pthread_barrier_t done;

static void one(struct worker *w)
{
	size_t n = below(w, 10000);

	if (n == 0)
		processes[below(w, sizeof(processes) / sizeof(*processes))](w);
	else if (n <= 100)
		ways[below(w, sizeof(ways) / sizeof(*ways))](w);
	else
		allocate(w);
}

static void *work(void *number)
{
	unsigned long i, own = (unsigned long)(uintptr_t)number;
	struct worker *w = (struct worker *)calloc(1, sizeof(*w));

	w->seed = (seed + 1) * 0x9e3779b97f4a7c15 ^ (own + 1) * 0xbf58476d1ce4e5b9;
	for (i = 0; i < operations; i++)
		one(w);
	processes[own % 3](w);
	ways[own % 5](w);
	if (goes_on) {
		pthread_barrier_wait(&done);
		while (1)
			allocate(w);
	}
	for (i = 0; i < OWN; i++)
		free(w->own[i]);
	free(w);
	if (strcmp(end, "thread") == 0)
		pthread_detach(pthread_self());
	return NULL;
}

static void at_end(void)
{
	free(malloc(200));
}

static void become_another(char **argv)
{
	char number[32], last[] = "return";
	char *args[] = { argv[0], number, argv[2], argv[3], last, argv[5], NULL };

	snprintf(number, sizeof(number), "%lu", seed + 1);
	if (setenv("EXECUTED", "1", 1))
		die("setenv");
	execv(self, args);
	die("exec: %s", strerror(errno));
}

static void *exec_in_thread(void *argv)
{
	become_another((char **)argv);
	return NULL;
}

static void leave(char **argv)
{
	int *volatile wild = (int *)(uintptr_t)8;

	if (strcmp(end, "exit") == 0)
		exit(3);
	if (strcmp(end, "_exit") == 0 || strcmp(end, "running") == 0)
		_exit(3);
	if (strcmp(end, "quick_exit") == 0)
		quick_exit(3);
	if (strcmp(end, "abort") == 0)
		abort();
	if (strcmp(end, "kill") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(end, "segv") == 0)
		*wild = 1;
	if (strcmp(end, "exec") == 0)
		become_another(argv);
	if (strcmp(end, "threadexec") == 0) {
		pthread_t t;

		if (pthread_create(&t, NULL, exec_in_thread, argv))
			die("no thread");
		pthread_join(t, NULL);
	}
	if (strcmp(end, "thread") == 0)
		pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	static pthread_t all[64];
	struct sigaction action = {};
	unsigned long i;

	if (argc == 2) { /* "spawned" */
		free(malloc(10));
		return 0;
	}
	if (argc < 5)
		die("usage: schedule SEED THREADS OPERATIONS END [PLUG]");
	self = realpath("/proc/self/exe", NULL);
	seed = number(argv[1]);
	threads = number(argv[2]);
	operations = number(argv[3]);
	end = argv[4];
	goes_on = strcmp(end, "running") == 0 || strcmp(end, "threadexec") == 0;
	plug = argc > 5 ? argv[5] : NULL;
	if (threads < 1 || threads > 64)
		die("from 1 to 64 threads");
	action.sa_handler = on_signal;
	sigaction(SIGUSR1, &action, NULL);
	pthread_key_create(&key, free_block);
	pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
	atexit(at_end);
	at_quick_exit(at_end);
	if (!getenv("EXECUTED"))
		gate();
	for (i = 0; i < threads; i++)
		if (pthread_create(&all[i], NULL, work, (void *)(uintptr_t)i))
			die("no thread");
	if (strcmp(end, "thread") == 0)
		leave(argv);
	if (goes_on)
		pthread_barrier_wait(&done);
	else
		for (i = 0; i < threads; i++)
			pthread_join(all[i], NULL);
	leave(argv);
	return 3;
}
