// SPDX-License-Identifier: Apache-2.0
/*
 * activity THREADS ROUNDS MILLISECONDS [pinned]: threads that make system calls, sleep,
 * and compute. With "pinned" all run on the first processor.
 *
 * After the gate each thread, ROUNDS times, opens the root directory, reads from it,
 * which fails, closes it, makes some more calls, some of which fail, and sleeps for a
 * moment. Then it computes for MILLISECONDS of its own CPU time, in code that has a
 * section of its own. Every call is made by its number, so that no other calls are
 * among them. Marks delimit the parts: lseek on no descriptor, to MARK + N, N from 1
 * to 6.
 *
 * Output: "hot START END", the section; for each thread
 * "thread TID SWITCHES CPU_NS RUNS". SWITCHES is how often the thread left a processor
 * between the marks 1 and 4 according to the kernel (read between 1 and 2, and between
 * 3 and 4), CPU_NS the time that it computed, between the marks 5 and 6, and RUNS how
 * often it got a processor according to another counter of the kernel, read at the same
 * time as SWITCHES; 0 if the kernel lacks that counter.
 */
#include "prog.h"
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

enum { MARK = 0x5a5a00 };

struct worker {
	pthread_t thread;
	pid_t tid;
	unsigned long switches, runs, cpu_ns;
};

static unsigned long rounds, milliseconds;
static pthread_barrier_t start;
extern char __start_hot[], __stop_hot[];

static void mark(int n)
{
	syscall(SYS_lseek, -1, MARK + n, 0);
}

static unsigned long after(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	if (!at)
		die("no %s", name);
	return strtoul(at + strlen(name), NULL, 10);
}

static char *content(char *text, size_t size, const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		die("no %s", path);
	n = read(fd, text, size - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	return text;
}

/* runs returns how often the thread has got a processor. */
static unsigned long runs(void)
{
	char text[200];
	unsigned long n = 0;

	sscanf(content(text, sizeof(text), "/proc/thread-self/schedstat"), "%*s %*s %lu", &n);
	return n;
}

/* switches returns how often the thread has left a processor. */
static unsigned long switches(void)
{
	char text[8192];

	content(text, sizeof(text), "/proc/thread-self/status");
	return after(text, "\nvoluntary_ctxt_switches:") +
	       after(text, "\nnonvoluntary_ctxt_switches:");
}

static unsigned long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (unsigned long)now.tv_sec * 1000000000UL + (unsigned long)now.tv_nsec;
}

static __attribute__((noinline, section("hot"))) unsigned compute(unsigned x)
{
	unsigned i;

	for (i = 0; i < 10000000; i++)
		x = x * 1664525U + 1013904223U;
	return x;
}

static void calls(void)
{
	struct timespec moment = { 0, 100000 };
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);
	char c;

	syscall(SYS_read, fd, &c, 1UL);
	syscall(SYS_close, fd);
	syscall(SYS_renameat2, -1, "from nowhere", -1, "to nowhere", 0);
	syscall(SYS_faccessat, AT_FDCWD, (char *)1, R_OK);
	syscall(SYS_faccessat, AT_FDCWD, "", R_OK);
	syscall(SYS_kill, getpid(), 0);
	syscall(SYS_msgctl, -1, 0, NULL);
	syscall(SYS_shutdown, -1, SHUT_RDWR);
	nanosleep(&moment, NULL);
}

static void *run(void *arg)
{
	struct worker *w = (struct worker *)arg;
	volatile unsigned sum = 1;
	unsigned long i, before, ran, began;

	w->tid = thread_id();
	pthread_barrier_wait(&start);
	mark(1);
	before = switches();
	ran = runs();
	mark(2);
	for (i = 0; i < rounds; i++)
		calls();
	mark(3);
	w->switches = switches() - before;
	w->runs = runs() - ran;
	mark(4);
	began = cpu_ns();
	mark(5);
	while (cpu_ns() - began < milliseconds * 1000000UL)
		sum = compute(sum);
	mark(6);
	w->cpu_ns = cpu_ns() - began;
	return NULL;
}

static void pin(void)
{
	cpu_set_t all, one;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(all), &all))
		die("no processors");
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		die("cannot choose a processor");
}

int main(int argc, char **argv)
{
	struct worker *workers;
	unsigned long n, i;

	if (argc < 4)
		die("usage: activity THREADS ROUNDS MILLISECONDS [pinned]");
	n = number(argv[1]);
	rounds = number(argv[2]);
	milliseconds = number(argv[3]);
	workers = (struct worker *)calloc(n, sizeof(*workers));
	if (!workers)
		die("no memory");
	if (argc > 4)
		pin();
	pthread_barrier_init(&start, NULL, (unsigned)n + 1);
	for (i = 0; i < n; i++)
		if (pthread_create(&workers[i].thread, NULL, run, &workers[i]))
			die("no thread");
	gate();
	pthread_barrier_wait(&start);
	for (i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	out("hot %lx %lx\n", (unsigned long)__start_hot, (unsigned long)__stop_hot);
	for (i = 0; i < n; i++)
		out("thread %d %lu %lu %lu\n", (int)workers[i].tid, workers[i].switches,
		    workers[i].cpu_ns, workers[i].runs);
	out_flush();
	return 0;
}
