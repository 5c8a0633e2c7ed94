/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of shim.c: a file per process image, DIR/PID-N, where N counts up from 0 with each
 * exec. It is mapped, so that what is written stays however the process ends. It consists of
 * blocks of LOG_BLOCK bytes. The first one begins with struct log_file. Each other one belongs
 * to a thread; the blocks of a thread are in the order in which it filled them. Such a block
 * consists of 64-bit words: the ID of the thread, then entries
 *
 *	state | function << 8 | frames << 16
 *	block that was passed: freed, moved
 *	block that was made, 0 for none
 *	requested bytes; all ones if a product does not fit
 *	time before the call and time after it, CLOCK_MONOTONIC in ns
 *	return addresses, the innermost first
 *
 * up to a state of 0 or the end of the block. An entry is open while the call lasts; the last
 * entry of a thread that was killed may stay open.
 *
 * Nothing here allocates, and errno is preserved.
 */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

enum {
	LOG_VERSION = 1,
	LOG_BLOCK = 64 << 10, /* bytes; a multiple of any machine's page */
	LOG_ENTRY = 6, /* words of an entry without frames */
	LOG_MOST_FRAMES = 512,
};

enum log_state { LOG_NONE, LOG_OPEN, LOG_DONE };

enum log_function {
	LOG_MALLOC,
	LOG_CALLOC,
	LOG_REALLOC,
	LOG_REALLOCARRAY,
	LOG_FREE,
	LOG_POSIX_MEMALIGN,
	LOG_ALIGNED_ALLOC,
	LOG_MEMALIGN,
	LOG_VALLOC,
	LOG_PVALLOC,
	LOG_FUNCTIONS
};

/* The beginning of a file. All counters are updated with atomic additions. */
struct log_file {
	char magic[8];
	uint64_t version;
	uint64_t word; /* bytes of a pointer */
	uint64_t pid;
	uint64_t blocks; /* taken by threads */
	uint64_t start, end; /* addresses of the shim */
	uint64_t unlogged; /* calls before there was a log */
	uint64_t foreign; /* calls by children of vfork, who share the memory */
	uint64_t next[LOG_FUNCTIONS]; /* address of the next allocator's function */
};

/* The state of one process. A child of fork finds it empty. */
struct log_process {
	struct log_file *file;
	int opening;
	char path[512];
};

/* The state of a thread and its block. */
struct log_thread {
	struct log_file *file; /* file of the block */
	uint64_t *block, *at;
	pid_t tid;
	int inside; /* functions of the allocator that call others by name */
};

#define TLS __thread __attribute__((tls_model("initial-exec")))

static TLS struct log_thread log_own;
static struct log_process *log_process;
static uint64_t log_unlogged; /* before there is a file */
static int log_depth; /* most frames of an entry */
static char log_dir[256];
static const uint64_t *log_next; /* LOG_FUNCTIONS addresses */

static uintptr_t log_image_start, log_image_end; /* addresses of the shim */

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* log_find_image finds the addresses of the shim. */
static void log_find_image(void)
{
	const char *start = (const char *)&__ehdr_start;
	const ElfW(Phdr) *segment = (const void *)(start + __ehdr_start.e_phoff);
	int i;

	log_image_start = log_image_end = (uintptr_t)start;
	for (i = 0; i < __ehdr_start.e_phnum; i++)
		if (segment[i].p_type == PT_LOAD)
			log_image_end = (uintptr_t)start + segment[i].p_vaddr + segment[i].p_memsz;
}

static __attribute__((noreturn)) void log_die(const char *what)
{
	static const char head[] = "shim: cannot ";

	if (write(STDERR_FILENO, head, sizeof(head) - 1) < 0 ||
	    write(STDERR_FILENO, what, strlen(what)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
		_exit(95);
	_exit(96);
}

static inline uint64_t log_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * log_map maps n bytes of the file at path, which grows to hold them. It must not make the
 * allocator a cancellation point.
 */
static void *log_map(const char *path, int flags, uint64_t offset, size_t n)
{
	int fd, cancel;
	void *p;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd = open(path, O_RDWR | O_CLOEXEC | O_LARGEFILE | flags, 0600);
	if (fd < 0) {
		pthread_setcancelstate(cancel, NULL);
		return NULL;
	}
	/* Unlike ftruncate this never makes the file shorter. */
	if (pwrite64(fd, "", 1, (off64_t)(offset + n - 1)) != 1)
		log_die("write the log");
	p = mmap64(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off64_t)offset);
	if (p == MAP_FAILED)
		log_die("map the log");
	close(fd);
	pthread_setcancelstate(cancel, NULL);
	return p;
}

/* log_open makes the file of this process. */
static void log_open(struct log_process *own)
{
	struct log_file *f = NULL;
	int i, n = 0;

	while (!f) {
		snprintf(own->path, sizeof(own->path), "%s/%d-%d", log_dir, (int)getpid(), n++);
		f = log_map(own->path, O_CREAT | O_EXCL, 0, LOG_BLOCK);
		if (!f && errno != EEXIST)
			log_die("create the log");
	}
	f->version = LOG_VERSION;
	f->word = sizeof(void *);
	f->pid = (uint64_t)getpid();
	f->start = log_image_start;
	f->end = log_image_end;
	f->unlogged = log_unlogged;
	for (i = 0; i < LOG_FUNCTIONS; i++)
		f->next[i] = log_next[i];
	memcpy(f->magic, "SHIMLOG", 8);
	__atomic_store_n(&own->file, f, __ATOMIC_RELEASE);
}

/* log_setup reads the environment; it returns 0 as long as there is none. */
static int log_setup(void)
{
	struct log_process *p;
	const char *dir, *depth;

	if (!environ)
		return 0; /* the C library is not initialised yet */
	dir = getenv("SHIM_LOG");
	if (!dir || strlen(dir) >= sizeof(log_dir))
		return 1;
	depth = getenv("SHIM_DEPTH");
	log_depth = depth ? atoi(depth) : 0;
	if (log_depth > LOG_MOST_FRAMES)
		log_depth = LOG_MOST_FRAMES;
	memcpy(log_dir, dir, strlen(dir) + 1);
	log_find_image();
	p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || madvise(p, sizeof(*p), MADV_WIPEONFORK))
		log_die("set up");
	log_process = p;
	return 1;
}

/* log_of_process returns the file of this process, NULL if nothing is logged. */
static inline struct log_file *log_of_process(void)
{
	struct log_process *own = __atomic_load_n(&log_process, __ATOMIC_ACQUIRE);
	struct log_file *f;

	if (!own)
		return NULL;
	f = __atomic_load_n(&own->file, __ATOMIC_ACQUIRE);
	if (__builtin_expect(!f, 0)) {
		if (!__atomic_exchange_n(&own->opening, 1, __ATOMIC_ACQ_REL))
			log_open(own);
		while (!(f = __atomic_load_n(&own->file, __ATOMIC_ACQUIRE)))
			sched_yield();
	}
	return f;
}

/* log_take gives the thread a new block. */
static void log_take(struct log_thread *t)
{
	uint64_t n = __atomic_fetch_add(&t->file->blocks, 1, __ATOMIC_RELAXED);
	void *p = log_map(log_process->path, 0, (n + 1) * LOG_BLOCK, LOG_BLOCK);

	if (!p)
		log_die("open the log again");
	if (t->block)
		munmap(t->block, LOG_BLOCK);
	t->block = p;
	t->block[0] = (uint64_t)t->tid;
	t->at = t->block + 1;
}

/* log_join adds a thread that logs for the first time, or for the first time after a fork. */
static int log_join(struct log_thread *t, struct log_file *f, pid_t tid)
{
	if ((uint64_t)syscall(SYS_getpid) != f->pid) { /* vfork: the state is the parent's */
		__atomic_fetch_add(&f->foreign, 1, __ATOMIC_RELAXED);
		return 0;
	}
	t->file = f;
	t->tid = tid;
	t->block = NULL; /* after a fork it is the parent's, and stays mapped */
	t->at = NULL;
	return 1;
}

struct log_walk {
	uint64_t *to;
	int n;
};

static _Unwind_Reason_Code log_frame(struct _Unwind_Context *context, void *arg)
{
	struct log_walk *w = arg;
	uintptr_t ip = (uintptr_t)_Unwind_GetIP(context);

	if (!ip || w->n == log_depth)
		return _URC_END_OF_STACK;
	if (w->n || ip < log_image_start || ip >= log_image_end)
		w->to[w->n++] = ip;
	return _URC_NO_REASON;
}

/* log_room returns the place for the thread's next entry, NULL if there is none. */
static uint64_t *log_room(void)
{
	struct log_file *f = log_of_process();
	struct log_thread *t = &log_own;
	pid_t tid;

	if (!f) {
		__atomic_fetch_add(&log_unlogged, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	tid = (pid_t)syscall(SYS_gettid);
	if ((t->file != f || t->tid != tid) && !log_join(t, f, tid))
		return NULL;
	if (!t->block || t->at + LOG_ENTRY + log_depth > t->block + LOG_BLOCK / sizeof(*t->at))
		log_take(t);
	return t->at;
}

/* log_begin opens an entry, and returns NULL if nothing is logged. */
static uint64_t *log_begin(enum log_function function, const void *old, uint64_t size)
{
	int saved = errno;
	uint64_t *e = log_room();
	struct log_walk w = { 0 };

	if (!e)
		return NULL;
	if (log_depth) {
		w.to = e + LOG_ENTRY;
		_Unwind_Backtrace(log_frame, &w);
	}
	log_own.at += LOG_ENTRY + w.n;
	e[1] = (uintptr_t)old;
	e[3] = size;
	e[4] = log_clock();
	__atomic_store_n(e, LOG_OPEN | (uint64_t)function << 8 | (uint64_t)w.n << 16,
			 __ATOMIC_RELEASE);
	errno = saved;
	return e;
}

/* log_end completes an entry with the block that was made. */
static inline void log_end(uint64_t *e, const void *made)
{
	int saved;

	if (!e)
		return;
	saved = errno;
	e[2] = (uintptr_t)made;
	e[5] = log_clock();
	__atomic_store_n(e, (e[0] & ~(uint64_t)0xff) | LOG_DONE, __ATOMIC_RELEASE);
	errno = saved;
}

#endif /* SHIM_LOG_H */
