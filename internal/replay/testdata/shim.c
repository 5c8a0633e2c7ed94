// SPDX-License-Identifier: Apache-2.0
/*
 * A malloc library that never gives an address twice and writes each call into
 * the file REPLAY_LOG: 64-bit numbers, in the first place how many calls there
 * are, then for each six of them: the number in the thread's name, the function,
 * the block that ends, the new block, the size, the alignment.
 *
 * With -DNULL_MALLOC all blocks are one, and no call is written: what is left is
 * the cost of those who call. With -DNO_MEMALIGN there is no memalign.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef NULL_MALLOC

static char block[1 << 16] __attribute__((aligned(4096)));

void *malloc(size_t size)
{
	return size <= sizeof(block) ? block : NULL;
}

void *calloc(size_t n, size_t size)
{
	return malloc(n * size);
}

void *realloc(void *old, size_t size)
{
	(void)old;
	return malloc(size);
}

void free(void *old)
{
	(void)old;
}

#else

enum { MALLOC, CALLOC, REALLOC, FREE, MEMALIGN, POSIX_MEMALIGN, ALIGNED_ALLOC };
enum { NUMBERS = 6, HEAD = 16 };

static const uint64_t room = 64ull << 30;
static _Atomic uint64_t *log_;
static uint64_t log_length;
static _Atomic uint64_t top;
static char *base;
static __thread int64_t thread = -1;

/* begin opens the log; the dynamic loader's first call comes here, alone. */
static void begin(void)
{
	int fd = open(getenv("REPLAY_LOG"), O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		_exit(90);
	log_ = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (log_ == MAP_FAILED || base == MAP_FAILED)
		_exit(91);
	log_length = (uint64_t)st.st_size / 8;
	close(fd);
}

static uint64_t here(void)
{
	char name[16] = "", *digits;

	if (thread >= 0)
		return (uint64_t)thread;
	prctl(PR_GET_NAME, name);
	digits = strpbrk(name, "0123456789");
	thread = digits ? atoi(digits) : 0;
	return (uint64_t)thread;
}

static void note(int function, void *old, void *new, uint64_t size, uint64_t alignment)
{
	uint64_t at = 1 + NUMBERS * atomic_fetch_add(log_, 1);

	if (at + NUMBERS > log_length)
		_exit(92);
	log_[at] = here();
	log_[at + 1] = (uint64_t)function;
	log_[at + 2] = (uintptr_t)old;
	log_[at + 3] = (uintptr_t) new;
	log_[at + 4] = size;
	log_[at + 5] = alignment;
}

static char *get(size_t size, size_t alignment)
{
	uint64_t at, from;

	if (!base)
		begin();
	at = atomic_fetch_add(&top, size + alignment + HEAD);
	if (at + size + alignment + HEAD > room)
		_exit(93);
	from = ((uintptr_t)base + at + HEAD + alignment - 1) / alignment * alignment;
	memcpy((char *)from - sizeof(size), &size, sizeof(size));
	return (char *)from;
}

void *malloc(size_t size)
{
	void *new = get(size, 16);

	note(MALLOC, NULL, new, size, 0);
	return new;
}

void *calloc(size_t n, size_t size)
{
	void *new = get(n * size, 16);

	note(CALLOC, NULL, new, n * size, 0);
	return new;
}

void *realloc(void *old, size_t size)
{
	char *new = get(size, 16);
	size_t kept = 0;

	if (old)
		memcpy(&kept, (char *)old - sizeof(kept), sizeof(kept));
	memcpy(new, old ? old : new, kept < size ? kept : size);
	note(REALLOC, old, new, size, 0);
	return new;
}

void free(void *old)
{
	if (!base)
		begin();
	note(FREE, old, NULL, 0, 0);
}

#ifndef NO_MEMALIGN
void *memalign(size_t alignment, size_t size)
{
	void *new = get(size, alignment);

	note(MEMALIGN, NULL, new, size, alignment);
	return new;
}
#endif

int posix_memalign(void **to, size_t alignment, size_t size)
{
	if (alignment < sizeof(void *) || alignment & (alignment - 1))
		return EINVAL;
	*to = get(size, alignment);
	note(POSIX_MEMALIGN, NULL, *to, size, alignment);
	return 0;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	void *new = get(size, alignment);

	note(ALIGNED_ALLOC, NULL, new, size, alignment);
	return new;
}

#endif
