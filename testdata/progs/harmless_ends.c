// SPDX-License-Identifier: Apache-2.0
/*
 * harmless_ends HOW N: ends, or makes others end, in ways that a tracer could disturb. Its
 * output and its exit code are the same each time, with and without a tracer. It allocates up
 * to the end. HOW is one of
 *
 *	exit		exit in the middle of eight busy threads; code 7
 *	main		the first thread ends, the others continue; code 0
 *	vfork		N children by vfork, which exec or end
 *	fork		N children by fork, which allocate and end with a code
 *	spawn		N children by posix_spawn
 *	idle		as a thread of the policy SCHED_IDLE
 *	limits		under resource limits, the size of its address space among them
 */
#include "pair.h"
#include "prog.h"
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

static unsigned long rounds;

enum { THREADS = 8 };

static pthread_barrier_t start;

static void *without_end(void *arg)
{
	pthread_barrier_wait(&start);
	for (size_t n = 1;; n = n % 4000 + 1)
		pair(n);
	return arg;
}

static void last_words(void)
{
	for (int i = 0; i < 100; i++)
		pair(100);
	out("last words\n");
	out_flush();
}

static int exit_busy(void)
{
	pthread_t t;

	atexit(last_words);
	pthread_barrier_init(&start, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t, NULL, without_end, NULL))
			die("no thread");
	pthread_barrier_wait(&start);
	for (unsigned long i = 0; i < rounds; i++)
		pair(i % 100);
	exit(7);
}

static void *outlive(void *first)
{
	pthread_join(*(pthread_t *)first, NULL);
	for (unsigned long i = 0; i < rounds; i++)
		pair(i % 100);
	out("outlived\n");
	out_flush();
	exit(0);
}

static int main_ends(void)
{
	static pthread_t self, t;

	self = pthread_self();
	if (pthread_create(&t, NULL, outlive, &self))
		die("no thread");
	pair(10);
	pthread_exit(NULL);
}

static unsigned status_of(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("no child");
	return WIFEXITED(status) ? (unsigned)WEXITSTATUS(status)
				 : 1000u + (unsigned)WTERMSIG(status);
}

static int vforks(void)
{
	volatile unsigned long sum = 0, i;

	for (i = 0; i < rounds; i++) {
		void *volatile kept = malloc(50);
		pid_t pid = vfork();

		if (pid == 0) {
			pair(20); /* in the memory of its parent */
			if (i % 2)
				execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
			_exit(5);
		}
		sum += status_of(pid);
		free(kept);
	}
	out("vfork %lu\n", sum);
	return 0;
}

static int forks(void)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < rounds; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			for (int n = 0; n < 200; n++)
				pair((size_t)n);
			_exit((int)(i % 5));
		}
		pair(30);
		sum += status_of(pid);
	}
	out("fork %lu\n", sum);
	return 0;
}

static int spawns(void)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 4", NULL };
	unsigned long sum = 0;

	for (unsigned long i = 0; i < rounds; i++) {
		pid_t pid;

		if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ))
			die("no child");
		pair(30);
		sum += status_of(pid);
	}
	out("spawn %lu\n", sum);
	return 0;
}

static int idle(void)
{
	struct sched_param none;

	memset(&none, 0, sizeof(none));
	if (sched_setscheduler(0, SCHED_IDLE, &none))
		die("not idle");
	for (unsigned long i = 0; i < rounds * 10; i++)
		pair(i % 3000);
	out("idle %d\n", sched_getscheduler(0) == SCHED_IDLE);
	return 0;
}

static void limit(int what, rlim_t to)
{
	struct rlimit r = { to, to };

	if (setrlimit((__rlimit_resource_t)what, &r))
		die("no limit");
}

static int limits(void)
{
	unsigned long mapped = 0, failed = 0, refused;

	limit(RLIMIT_AS, 512ul << 20);
	limit(RLIMIT_MEMLOCK, 0);
	limit(RLIMIT_NOFILE, 5);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_STACK, 256 << 10);
	for (unsigned long i = 0; i < rounds; i++) {
		/* More than is left, then as much as there always is. */
		void *p = malloc(600ul << 20), *q = malloc(200ul << 20);

		failed += !p;
		mapped += !!q;
		free(p);
		free(q);
		pair(i);
	}
	refused = open("/dev/null", O_RDONLY) < 0;
	out("limits %lu %lu %lu\n", failed, mapped, refused);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} all[] = {
	{ "exit", exit_busy }, { "main", main_ends }, { "vfork", vforks },  { "fork", forks },
	{ "spawn", spawns },   { "idle", idle },      { "limits", limits },
};

int main(int argc, char **argv)
{
	if (argc < 3)
		die("usage: harmless_ends HOW N");
	rounds = number(argv[2]);
	gate();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int code;

		if (strcmp(all[i].name, argv[1]))
			continue;
		code = all[i].run();
		out_flush();
		return code;
	}
	die("no way '%s'", argv[1]);
}
