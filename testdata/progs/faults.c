// SPDX-License-Identifier: Apache-2.0
/*
 * Touches memory in known places. At the end it prints how many bytes of what each function has
 * touched are resident, as the kernel's page table has it: "FUNCTION START END": BYTES.
 */
#include "prog.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

/* Memory that a function has touched. */
struct place {
	const char *function;
	char *addr;
	size_t size;
};

static struct place places[20];
static int count;
static volatile char sink;

static void keep(const char *function, char *addr, size_t size)
{
	places[count].function = function;
	places[count].addr = addr;
	places[count].size = size;
	count++;
}

static char *map(size_t size, int flags)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
		       0);

	if (p == MAP_FAILED)
		die("mmap of %zu bytes: %s", size, strerror(errno));
	madvise(p, size, MADV_NOHUGEPAGE); /* fails where there are no huge pages */
	return p;
}

/* map_alone maps memory that the kernel does not merge with that next to it. */
static char *map_alone(size_t size)
{
	char *p = map(size + 2 * PAGE, 0);

	if (mprotect(p, PAGE, PROT_NONE) || mprotect(p + PAGE + size, PAGE, PROT_NONE))
		die("mprotect: %s", strerror(errno));
	return p + PAGE;
}

static ALWAYS_INLINE void write_pages(char *p, size_t size)
{
	for (size_t i = 0; i < size; i += PAGE)
		((volatile char *)p)[i] = 1;
}

NOINLINE static void touch_written(void)
{
	char *p = map(200 * PAGE, 0);

	write_pages(p, 200 * PAGE);
	keep(__func__, p, 200 * PAGE);
}

/* Pages of zeros are not resident. */
NOINLINE static void touch_zeros(void)
{
	char *p = map(50 * PAGE, 0);

	for (size_t i = 0; i < 50 * PAGE; i += PAGE)
		sink = p[i];
	keep(__func__, p, 50 * PAGE);
}

NOINLINE static void touch_huge(void)
{
	char *p = map(5 * HUGE_PAGE, 0), *start;

	start = (char *)(((uintptr_t)p + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
	madvise(p, 5 * HUGE_PAGE, MADV_HUGEPAGE);
	for (int i = 0; i < 4; i++)
		((volatile char *)start)[i * (size_t)HUGE_PAGE + 123 * PAGE] = 1;
	keep(__func__, p, 5 * HUGE_PAGE);
}

NOINLINE static void touch_by_read(void)
{
	char *p = map(60 * PAGE, 0);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, p, 60 * PAGE) != 60 * PAGE)
		die("read /dev/zero: %s", strerror(errno));
	close(fd);
	keep(__func__, p, 60 * PAGE);
}

NOINLINE static void touch_populated(void)
{
	keep(__func__, map(70 * PAGE, MAP_POPULATE), 70 * PAGE);
}

NOINLINE static void touch_locked(void)
{
	char *p = map(10 * PAGE, 0);

	if (mlock(p, 10 * PAGE))
		die("mlock: %s", strerror(errno));
	keep(__func__, p, 10 * PAGE);
}

/* The kernel pins the pages of direct I/O without a fault. */
NOINLINE static void touch_direct(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC | O_DIRECT);
	char *p;

	if (fd < 0)
		return; /* the file system has none */
	p = map_alone(2 * PAGE);
	if (read(fd, p, 2 * PAGE) != 2 * PAGE)
		die("read with O_DIRECT: %s", strerror(errno));
	close(fd);
	keep(__func__, p, 2 * PAGE);
}

/* It does so here as well. */
NOINLINE static void touch_pinned(void)
{
	static char block[20 * PAGE];
	char *p = map_alone(sizeof(block));
	struct iovec from = { block, sizeof(block) }, to = { p, sizeof(block) };

	if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) != (ssize_t)sizeof(block))
		die("process_vm_writev: %s", strerror(errno));
	keep(__func__, p, sizeof(block));
}

/* One access in sixteen pages: the kernel maps those around it, too. */
NOINLINE static void touch_file(void)
{
	static char block[64 * PAGE];
	int fd = memfd_create("file", MFD_CLOEXEC);
	char *p;

	if (fd < 0 || write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
		die("memfd: %s", strerror(errno));
	p = mmap(NULL, sizeof(block), PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	close(fd);
	for (size_t i = 0; i < sizeof(block); i += 16 * PAGE)
		sink = p[i + 7 * PAGE];
	keep(__func__, p, sizeof(block));
}

NOINLINE static void touch_dropped(void)
{
	char *p = map(100 * PAGE, 0);

	write_pages(p, 100 * PAGE);
	madvise(p + 20 * PAGE, 60 * PAGE, MADV_DONTNEED);
	keep(__func__, p, 100 * PAGE);
}

/* The memory moves, and is the mover's no more than before. */
NOINLINE static void touch_moved(void)
{
	char *p = map(90 * PAGE, 0), *to = map(HUGE_PAGE, 0);

	write_pages(p, 90 * PAGE);
	p = mremap(p, 90 * PAGE, 90 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (p != to)
		die("mremap: %s", strerror(errno));
	keep(__func__, p, HUGE_PAGE);
}

NOINLINE static void touch_first(char *p, size_t size)
{
	write_pages(p, size);
}

/* Memory that another function had touched, and that was given back. */
NOINLINE static void touch_again(void)
{
	char *p = map(40 * PAGE, 0);

	touch_first(p, 40 * PAGE);
	madvise(p, 40 * PAGE, MADV_DONTNEED);
	write_pages(p, 40 * PAGE);
	keep(__func__, p, 40 * PAGE);
}

/* A child's pages are its own, and copies of shared pages are those of who touched them first. */
NOINLINE static void touch_and_fork(void)
{
	char *p = map(30 * PAGE, 0);
	int status;
	pid_t child;

	write_pages(p, 30 * PAGE);
	child = fork();
	if (child == 0) {
		char *own = map(500 * PAGE, 0);

		write_pages(own, 500 * PAGE);
		_exit(own[PAGE] != 1);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("the child failed");
	keep(__func__, p, 30 * PAGE);
}

NOINLINE static void write_after_fork(void)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(places[i].function, "touch_and_fork"))
			write_pages(places[i].addr, places[i].size);
}

static sem_t begin;

NOINLINE static void touch_in_old_thread(void)
{
	char *p = map(25 * PAGE, 0);

	write_pages(p, 25 * PAGE);
	keep(__func__, p, 25 * PAGE);
}

NOINLINE static void touch_in_new_thread(void)
{
	char *p = map(35 * PAGE, 0);

	write_pages(p, 35 * PAGE);
	keep(__func__, p, 35 * PAGE);
}

static void *run_new_thread(void *unused)
{
	touch_in_new_thread();
	return unused;
}

static pthread_t start(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		die("cannot start a thread");
	return thread;
}

/* run_old_thread starts before the gate. */
static void *run_old_thread(void *unused)
{
	while (sem_wait(&begin))
		;
	touch_in_old_thread();
	pthread_join(start(run_new_thread), NULL);
	return unused;
}

/*
 * resident returns how many bytes are resident, without pages of zeros: only this process has the
 * others, except for those of the file.
 */
static size_t resident(const struct place *x)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	int file = !strcmp(x->function, "touch_file");
	size_t n = 0;

	for (size_t i = 0; i < x->size; i += PAGE) {
		uint64_t entry = 0;

		if (pread(fd, &entry, 8, (off_t)(((uintptr_t)x->addr + i) / PAGE * 8)) != 8)
			die("pagemap: %s", strerror(errno));
		if (entry >> 63 && (file || entry >> 56 & 1))
			n += PAGE;
	}
	close(fd);
	return n;
}

int main(void)
{
	pthread_t old;

	sem_init(&begin, 0, 0);
	old = start(run_old_thread);
	gate();
	touch_written();
	touch_zeros();
	touch_huge();
	touch_by_read();
	touch_populated();
	touch_locked();
	touch_direct();
	touch_pinned();
	touch_file();
	touch_dropped();
	touch_moved();
	touch_again();
	touch_and_fork();
	write_after_fork();
	sem_post(&begin);
	pthread_join(old, NULL);
	out("{\"pid\":%d,\"leaks\":{", (int)getpid());
	for (int i = 0; i < count; i++)
		out("%s\"%s %lx %lx\":%lu", i ? "," : "", places[i].function,
		    (unsigned long)places[i].addr, (unsigned long)(places[i].addr + places[i].size),
		    (unsigned long)resident(&places[i]));
	out("}}\n");
	out_flush();
	gate();
	return 0;
}
