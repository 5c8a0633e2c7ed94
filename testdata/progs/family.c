// SPDX-License-Identifier: Apache-2.0
/*
 * family DIR WAY: makes other processes.
 *
 * After the gate it calls the allocator, makes processes in the way WAY, and waits for them.
 * Each process writes a report of its own calls to DIR/PID; a process that executes another
 * program appends to that. A process first frees a block that it has inherited.
 *
 *	fork		a child; the parent makes calls before and after
 *	generations	a child, its child, and so on, four
 *	orphan		a child that ends at once, whose child continues
 *	killed		a child that is killed
 *	vfork		a child that calls the allocator, and then executes this program
 *	spawn		posix_spawn of this program
 *	system		a shell that starts this program
 *	threads		three threads that each make a child, at the same time
 *	signals		a child that counts signals, and is stopped and continued as a job
 *	execs		this program in place of this program, executed by a thread
 *	leaf		none; without a gate
 */
#include "prog.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

enum { LOG_CALLS = 1 << 12, SIGNALS = 100, THREADS = 3 };

extern char **environ;

static const char *dir;
static char own_path[4096];
static struct ledger mine;
static void *kept;
static volatile sig_atomic_t signals;

/* begin directs the report to the file of this process. */
static void begin(struct ledger *l)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%d", dir, (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
		die("cannot write %s", path);
	close(fd);
	l->tid = thread_id();
	l->length = 0;
	memset(l->done, 0, sizeof(l->done));
	memset(l->bytes, 0, sizeof(l->bytes));
	memset(l->ops, 0, sizeof(l->ops));
}

/* work makes some calls, and keeps a block. */
static void work(struct ledger *l)
{
	int i;

	do_free(l, kept);
	kept = NULL;
	for (i = 0; i < 20; i++) {
		void *p = do_malloc(l, 10 + (size_t)i);
		void *q = do_calloc(l, 3, 7);

		q = do_realloc(l, q, 500);
		do_free(l, p);
		do_free(l, kept);
		kept = q;
	}
}

/* whole is what a process made by fork does. */
static void whole(void)
{
	begin(&mine);
	work(&mine);
	report(&mine, 1, "");
}

static void await(pid_t pid, int want)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("no process %d to wait for", (int)pid);
	if (status != want)
		die("process %d has ended with %#x, not %#x", (int)pid, status, want);
}

static pid_t forked(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork");
	return pid;
}

static void generations(int n)
{
	pid_t pid;

	if (n == 0)
		return;
	pid = forked();
	if (pid == 0) {
		whole();
		generations(n - 1);
		_exit(0);
	}
	await(pid, 0);
}

static void orphan(void)
{
	int pipes[2], gone[2];
	pid_t pid;

	if (pipe(pipes) < 0 || pipe(gone) < 0)
		die("no pipe");
	pid = forked();
	if (pid == 0) {
		begin(&mine);
		report(&mine, 1, "");
		close(pipes[0]);
		if (forked() != 0)
			_exit(0);
		close(gone[1]);
		read_byte(gone[0]); /* end of file, which comes when the first process has ended */
		whole();
		write_all(pipes[1], "x", 1);
		_exit(0);
	}
	close(pipes[1]);
	await(pid, 0);
	close(gone[1]);
	if (!read_byte(pipes[0]))
		die("the orphan is gone");
	close(pipes[0]);
	close(gone[0]);
}

static void killed(void)
{
	int pipes[2];
	pid_t pid;

	if (pipe(pipes) < 0)
		die("no pipe");
	pid = forked();
	if (pid == 0) {
		whole();
		write_all(pipes[1], "x", 1);
		park();
	}
	close(pipes[1]);
	if (!read_byte(pipes[0]))
		die("no byte from the child");
	kill(pid, SIGKILL);
	await(pid, SIGKILL);
	close(pipes[0]);
}

/* The child of vfork shares the memory: it has a ledger of its own. */
static void shared(void)
{
	static struct ledger child;
	char *args[] = { own_path, (char *)dir, (char *)"leaf", NULL };
	pid_t pid;

	ledger_open(&child, LOG_CALLS);
	pid = vfork();
	if (pid < 0)
		die("cannot vfork");
	if (pid == 0) {
		begin(&child);
		work(&child);
		report(&child, 1, "");
		execv(own_path, args);
		_exit(96);
	}
	await(pid, 0);
}

static void spawned(void)
{
	char *args[] = { own_path, (char *)dir, (char *)"leaf", NULL };
	pid_t pid;

	if (posix_spawn(&pid, own_path, NULL, NULL, args, environ) != 0)
		die("cannot spawn");
	await(pid, 0);
}

static void shell(void)
{
	char text[2 * sizeof(own_path)];

	snprintf(text, sizeof(text), "'%s' '%s' leaf; exit 3", own_path, dir);
	if (system(text) != 3 << 8)
		die("system failed");
}

static void *one_thread(void *arg)
{
	pid_t pid = forked();

	(void)arg;
	if (pid == 0) {
		kept = NULL; /* otherwise both would free it */
		whole();
		_exit(0);
	}
	await(pid, 0);
	return NULL;
}

static void threads(void)
{
	pthread_t all[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		if (pthread_create(&all[i], NULL, one_thread, NULL) != 0)
			die("no thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
}

static void count(int sig)
{
	(void)sig;
	signals++;
}

static void stop_and_continue(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status) ||
	    WSTOPSIG(status) != SIGSTOP)
		die("the child has not stopped");
	kill(pid, SIGCONT);
	if (waitpid(pid, &status, WCONTINUED) != pid || !WIFCONTINUED(status))
		die("the child has not gone on");
}

static void signaled(void)
{
	struct sigaction action;
	union sigval value;
	sigset_t set, before;
	int i, pipes[2];
	pid_t pid;

	memset(&action, 0, sizeof(action));
	memset(&value, 0, sizeof(value));
	action.sa_handler = count;
	sigaction(SIGRTMIN, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, &before);
	if (pipe(pipes) < 0)
		die("no pipe");
	pid = forked();
	if (pid == 0) {
		begin(&mine);
		work(&mine);
		write_all(pipes[1], "x", 1);
		while (signals < SIGNALS)
			sigsuspend(&before);
		work(&mine);
		report(&mine, 1, "");
		_exit(signals == SIGNALS ? 0 : 1);
	}
	if (!read_byte(pipes[0]))
		die("no byte from the child");
	for (i = 0; i < SIGNALS; i++) {
		if (i % (SIGNALS / 4) == 0)
			stop_and_continue(pid);
		if (sigqueue(pid, SIGRTMIN, value) != 0)
			die("no signal");
	}
	await(pid, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(pipes[0]);
	close(pipes[1]);
}

static void *become(void *arg)
{
	char *args[] = { own_path, (char *)dir, (char *)"leaf", NULL };

	(void)arg;
	execv(own_path, args);
	die("cannot execute %s", own_path);
}

int main(int argc, char **argv)
{
	ssize_t n = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);
	const char *way;
	pthread_t thread;

	if (argc != 3 || n < 0)
		die("usage: family DIR WAY");
	dir = argv[1];
	way = argv[2];
	ledger_open(&mine, LOG_CALLS);
	if (strcmp(way, "leaf") != 0)
		gate();
	begin(&mine);
	if (strcmp(way, "threads") == 0) /* the C library makes calls for the threads */
		threads();
	work(&mine);
	if (strcmp(way, "fork") == 0)
		generations(1);
	else if (strcmp(way, "generations") == 0)
		generations(4);
	else if (strcmp(way, "orphan") == 0)
		orphan();
	else if (strcmp(way, "killed") == 0)
		killed();
	else if (strcmp(way, "vfork") == 0)
		shared();
	else if (strcmp(way, "spawn") == 0)
		spawned();
	else if (strcmp(way, "system") == 0)
		shell();
	else if (strcmp(way, "signals") == 0)
		signaled();
	else if (strcmp(way, "execs") != 0 && strcmp(way, "threads") != 0 &&
		 strcmp(way, "leaf") != 0)
		die("no way '%s'", way);
	work(&mine);
	report(&mine, 1, "");
	if (strcmp(way, "execs") == 0) {
		if (pthread_create(&thread, NULL, become, NULL) != 0)
			die("no thread");
		park();
	}
	return 0;
}
