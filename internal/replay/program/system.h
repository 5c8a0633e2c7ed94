// SPDX-License-Identifier: Apache-2.0
/*
 * System functions for a replay that do not use malloc: memory, sleeping and waking,
 * clocks, the kernel's counters, and the file of a function.
 */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* print writes a text of up to 8 KiB without malloc. */
static __attribute__((format(printf, 2, 0))) void print(int fd, const char *format, va_list args)
{
	char text[8192];
	int n = vsnprintf(text, sizeof(text), format, args);

	(void)!write(fd, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static __attribute__((format(printf, 1, 2))) void report(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(STDOUT_FILENO, format, args);
	va_end(args);
}

static __attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(STDERR_FILENO, format, args);
	va_end(args);
	(void)!write(STDERR_FILENO, "\n", 1);
	_exit(1);
}

/* map returns zeroed and populated memory for count items. */
static void *map(uint64_t count, size_t size)
{
	void *p = MAP_FAILED;

	if (count <= SIZE_MAX / 2 / size)
		p = mmap(NULL, count * size + 1, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		die("no memory for %llu times %zu bytes", (unsigned long long)count, size);
	return p;
}

/* load returns the numbers in a file, and their count. */
static uint64_t *load(const char *path, uint64_t *count)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint64_t *words, i;
	size_t size = 0;

	if (fd < 0 || fstat(fd, &st) != 0)
		die("opening %s: %s", path, strerror(errno));
	*count = (uint64_t)st.st_size / sizeof(*words);
	words = map(*count, sizeof(*words));
	while (size < *count * sizeof(*words)) {
		ssize_t n = read(fd, (char *)words + size, *count * sizeof(*words) - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("reading %s: %s", path, n ? strerror(errno) : "the file was truncated");
		size += (size_t)n;
	}
	close(fd);
	for (i = 0; i < *count; i++)
		words[i] = le64toh(words[i]);
	return words;
}

static inline void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
	syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* await sleeps until *word equals value. */
static void await(_Atomic uint32_t *word, uint32_t value)
{
	uint32_t now;

	while ((now = atomic_load(word)) != value)
		futex(word, FUTEX_WAIT, now);
}

/* count_to adds one to *word and wakes the sleepers when it reaches value. */
static void count_to(_Atomic uint32_t *word, uint32_t value)
{
	if (atomic_fetch_add(word, 1) + 1 == value)
		futex(word, FUTEX_WAKE, INT32_MAX);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t minor_faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)u.ru_minflt;
}

/* status returns a field of /proc/self/status such as "VmRSS:", in bytes. */
static unsigned long long status(const char *field)
{
	char text[8192], *at;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	unsigned long long kib = 0;

	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, field);
	if (!at)
		die("no %s in /proc/self/status", field);
	for (at += strlen(field); *at && *at != '\n'; at++)
		if (*at >= '0' && *at <= '9')
			kib = kib * 10 + (unsigned)(*at - '0');
	return kib * 1024;
}

/* reset_peak sets VmHWM to VmRSS, if the kernel supports that. */
static void reset_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	(void)!write(fd, "5", 1);
	close(fd);
}

/* origin returns the file that a function comes from. */
static const char *origin(const char *function)
{
	void *address = dlsym(RTLD_DEFAULT, function);
	Dl_info info;

	if (!address || !dladdr(address, &info) || !info.dli_fname)
		die("no %s", function);
	return info.dli_fname;
}

#endif /* SYSTEM_H */
