// SPDX-License-Identifier: Apache-2.0
/*
 * fileuse DIR: one process has files open, another one uses them.
 *
 * Before the gate it starts another process, which has none of the files, and opens
 * DIR/early. After the gate both continue in turns: the first one changes what it has open,
 * then the other one uses all files in the same way: DIR/early, DIR/later, DIR/copy,
 * DIR/moved and DIR/never. Of these the first one has open
 *
 *	turn 1	early
 *	turn 2	early and later, which was opened twice, copy as a duplicate of a descriptor
 *		that was closed, moved under a descriptor that another file had
 *	turn 3	early, and later under its second descriptor
 *	turn 4	none: all were closed, by close, close_range, and dup2 of a pipe
 *
 * At the end the other process prints, one line each, what it did with files that were open
 * at that time: "use TID FD EVENT PATH RESULT", with SWAP's numbers for events, followed by
 * " ARGUMENT": for 0 the path as it was passed, for 14 and 16 TYPE WHENCE START LENGTH. The
 * first line is "user PID".
 */
#include "prog.h"
#include <pthread.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { EARLY, LATER, COPY, MOVED, NEVER, FILES };

static const char *const names[FILES] = { "early", "later", "copy", "moved", "never" };
static char paths[FILES][300];
static int to_user[2], to_holder[2];

/* held[n] has bit f set if file f is open in turn n. */
static const unsigned held[] = {
	0,
	1U << EARLY,
	1U << EARLY | 1U << LATER | 1U << COPY | 1U << MOVED,
	1U << EARLY | 1U << LATER,
	0,
};

static unsigned open_now;

/* If something is done with two files at once, there is a line for each. */
static void say(int file, int fd, int event, long result, const char *more)
{
	if (open_now & 1U << file)
		out("use %d %d %d %s %ld%s\n", (int)thread_id(), fd, event, paths[file],
		    result < 0 ? (long)-errno : result, more);
}

static int open_file(int file, int flags)
{
	char more[320];
	int fd = open(paths[file], flags | O_CLOEXEC, 0600);

	if (fd < 0)
		die("cannot open %s", paths[file]);
	snprintf(more, sizeof(more), " %s", paths[file]);
	say(file, fd, 0, fd, more);
	return fd;
}

static void close_file(int file, int fd)
{
	say(file, fd, 1, close(fd), "");
}

static void lock_file(int file, int fd, short type, long start, long length)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };
	char more[100];
	int event = type == F_UNLCK ? 16 : 14;

	lock.l_start = start;
	lock.l_len = length;
	snprintf(more, sizeof(more), " %d 0 %ld %ld", type, start, length);
	say(file, fd, event, fcntl(fd, F_SETLK, &lock), more);
}

static void use(int file)
{
	char text[100] = "something";
	struct iovec parts[2] = { { text, 3 }, { text + 3, 4 } };
	int fd = open_file(file, O_RDWR), again, other;
	long n;

	say(file, fd, 4, write(fd, text, 9), "");
	say(file, fd, 4, pwrite(fd, text, 5, 20), "");
	say(file, fd, 4, writev(fd, parts, 2), "");
	say(file, fd, 4, pwritev(fd, parts, 2, 3), "");
	lseek(fd, 0, SEEK_SET); /* not recorded */
	say(file, fd, 2, read(fd, text, 9), "");
	say(file, fd, 2, pread(fd, text, 50, 2), "");
	say(file, fd, 2, readv(fd, parts, 2), "");
	say(file, fd, 2, preadv(fd, parts, 2, 3), "");
	say(file, fd, 2, syscall(SYS_read, fd, 1, 4), "");
	lock_file(file, fd, F_WRLCK, 3, 70000);
	lock_file(file, fd, F_UNLCK, 3, 70000);
	say(file, fd, 14, flock(fd, LOCK_EX | LOCK_NB), " 1 0 0 0");
	say(file, fd, 14, flock(fd, LOCK_SH), " 0 0 0 0");
	say(file, fd, 16, flock(fd, LOCK_UN), " 2 0 0 0");
	again = dup(fd);
	say(file, again, 2, read(again, text, 1), "");
	close_file(file, again);
	close_file(file, fd);
	fd = open_file(file, O_WRONLY);
	say(file, fd, 2, read(fd, text, 1), "");
	other = open_file(NEVER, O_RDWR);
	if (file != NEVER) {
		int from = open_file(file, O_RDONLY);

		n = sendfile(other, from, NULL, 4);
		say(file, from, 2, n, "");
		n = copy_file_range(from, NULL, other, NULL, 2, 0);
		say(file, from, 2, n, "");
		n = copy_file_range(from, NULL, fd, NULL, 1, 0);
		say(file, from, 2, n, "");
		say(file, fd, 4, n, "");
		close_file(file, from);
	}
	close_file(NEVER, other);
	close_file(file, fd);
}

static void *use_all(void *arg)
{
	int i;

	for (i = 0; i < FILES; i++)
		use(i);
	return arg;
}

static void user(void)
{
	unsigned char turn = 0;
	pthread_t thread;

	close(to_user[1]);
	close(to_holder[0]);
	close(GATE_READY);
	out("user %d\n", (int)getpid());
	while (read(to_user[0], &turn, 1) == 1) {
		open_now = held[turn];
		if (turn % 2 == 0)
			use_all(NULL);
		else if (pthread_create(&thread, NULL, use_all, NULL) || pthread_join(thread, NULL))
			die("no thread");
		if (write(to_holder[1], &turn, 1) != 1)
			die("nobody is there");
	}
	out_flush();
	_exit(0);
}

static void turn(unsigned char n)
{
	if (write(to_user[1], &n, 1) != 1 || read(to_holder[0], &n, 1) != 1)
		die("no turn %d", n);
}

static int opened(int file)
{
	int fd = open(paths[file], O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("cannot open %s", paths[file]);
	return fd;
}

int main(int argc, char **argv)
{
	int i, early, later, second, copy, moved, status;
	pid_t other;

	if (argc != 2)
		die("usage: fileuse DIR");
	for (i = 0; i < FILES; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", argv[1], names[i]);
		close(open(paths[i], O_RDWR | O_CREAT | O_EXCL, 0600));
	}
	if (pipe(to_user) || pipe(to_holder))
		die("no pipes");
	other = fork();
	if (other < 0)
		die("no process");
	if (other == 0)
		user();
	close(to_user[0]);
	close(to_holder[1]);
	early = opened(EARLY);
	gate();
	turn(1);

	later = opened(LATER);
	second = opened(LATER);
	i = opened(COPY);
	copy = fcntl(i, F_DUPFD_CLOEXEC, 100);
	close(i);
	moved = opened(NEVER);
	i = opened(MOVED);
	if (copy < 100 || dup2(i, moved) != moved)
		die("no duplicates");
	close(i);
	turn(2);

	close(later);
	close(moved);
	if (dup2(to_user[1], copy) != copy)
		die("no duplicate");
	turn(3);

	close(early);
	if (syscall(SYS_close_range, second, second, 0) && close(second))
		die("cannot close");
	turn(4);

	close(to_user[1]);
	close(copy);
	if (waitpid(other, &status, 0) != other || status)
		die("the other process failed");
	return 0;
}
