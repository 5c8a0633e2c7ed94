// SPDX-License-Identifier: Apache-2.0
/*
 * openfiles DIR THREADS MEGABYTES: what is visible of a process from outside.
 *
 * Before the gate it makes five files in DIR, which stay open, one of them twice and one
 * without a name, and opens DIR and a pipe. It starts THREADS threads that do nothing, and
 * touches MEGABYTES of memory. After the gate it makes 1000 times malloc(1000), frees every
 * second block, and waits for a byte or the end of file. The JSON lists the open files under
 * "files".
 */
#include "prog.h"
#include <pthread.h>

enum { FILES = 5, BLOCKS = 1000, SIZE = 1000, TWICE = 200 };

static pthread_barrier_t started;
static char more[FILES * 400 + 64];
static size_t length;

static void *idle(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&started);
	return park();
}

static void tell(int fd, unsigned long size, const char *path)
{
	length += (size_t)snprintf(more + length, sizeof(more) - length,
				   "%s{\"fd\":%d,\"size\":%lu,\"path\":\"%s\"}",
				   length ? "," : "\"files\":[", fd, size, path);
}

int main(int argc, char **argv)
{
	static const unsigned long sizes[FILES] = { 0, 1, 5000, 70000, 123456789 };
	static struct ledger l;
	unsigned long threads, bytes, i;
	int ends[2];
	char *memory;

	if (argc < 4)
		die("usage: openfiles DIR THREADS MEGABYTES");
	threads = number(argv[2]);
	bytes = number(argv[3]) << 20;
	for (i = 0; i < FILES; i++) {
		char path[300];
		int fd;

		snprintf(path, sizeof(path), "%s/file%lu", argv[1], i);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 || ftruncate(fd, (off_t)sizes[i]))
			die("cannot make %s", path);
		tell(fd, sizes[i], path);
		if (i == 2 && unlink(path))
			die("cannot remove %s", path);
		if (i == 4) {
			if (dup2(fd, TWICE) != TWICE)
				die("no second descriptor");
			tell(TWICE, sizes[i], path);
		}
	}
	length += (size_t)snprintf(more + length, sizeof(more) - length, "]");
	if (open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 || pipe(ends))
		die("no other descriptors");
	memory = (char *)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	if (memory == MAP_FAILED)
		die("no memory");
	memset(memory, 1, bytes);
	pthread_barrier_init(&started, NULL, (unsigned)threads + 1);
	for (i = 0; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, idle, NULL))
			die("no thread");
	}
	pthread_barrier_wait(&started);
	l.tid = thread_id();
	gate();
	for (i = 0; i < BLOCKS; i++) {
		void *p = do_malloc(&l, SIZE);

		if (i % 2)
			do_free(&l, p);
	}
	read_byte(GATE_GO);
	report(&l, 1, more);
	_exit(0);
}
