// SPDX-License-Identifier: Apache-2.0
/*
 * residence WHAT ARGUMENT [FILE]: a process whose memory is of one kind, and how much.
 *
 * WHAT is
 *	heap THREADS	blocks of all kinds: live, between live ones, in the caches of threads, in
 *			fast bins and with mappings of their own
 *	arenas THREADS	threads that have freed most of what they had, each in its own arena
 *	pinned MIB	a heap that is empty except for one block on top
 *	leak MIB	many small live blocks next to a cache with a constant size
 *	wide THREADS	threads that have more than one heap in their arenas, with free blocks
 *	file PATH	a file that is mapped and read
 *	shared MIB	shared memory in tmpfs
 *	stacks THREADS	threads that have used 64 KiB of their stacks
 *	mapped MIB	private mappings that are not malloc's
 *	fork MIB	leak in a child: it inherits as much, of which it frees a part
 *	sparse MAPPINGS	mappings of 512 GiB, each above a guard, of which one page is used
 *	huge MIB	a private mapping with transparent huge pages, if the kernel has some
 *	hugetlb MIB	a mapping of hugetlbfs, as MAP_HUGETLB makes it
 *	grow MIB	leak, wait at the gate, and leak as much again
 *	busy THREADS	threads that allocate and free until the end
 *
 * When nothing changes any more, it writes what it knows, waits at the gate, and ends. Output:
 * "NAME VALUE" lines. live is the size of all live blocks with malloc's headers, by the
 * program's own account. own_resident and own_mapped are what jemalloc, tcmalloc and mimalloc
 * know of themselves; the other names are those of mallinfo2. What malloc_info prints goes to FILE.
 */
#include "prog.h"
#include "residence_maps.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

static pthread_barrier_t done;
static unsigned long live; /* bytes of live blocks */

/* keep allocates a block that stays, fills it and counts it. */
static void *keep(size_t size)
{
	char *p = malloc(size);

	if (!p)
		die("no memory");
	memset(p, 1, size);
	__atomic_add_fetch(&live, malloc_usable_size(p) + sizeof(size_t), __ATOMIC_RELAXED);
	return p;
}

static void drop(void *p)
{
	__atomic_sub_fetch(&live, malloc_usable_size(p) + sizeof(size_t), __ATOMIC_RELAXED);
	free(p);
}

/* The statistics of other allocators, null without them. */
extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));
extern int MallocExtension_GetNumericProperty(const char *, size_t *) __attribute__((weak));
extern void mi_process_info(size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *,
			    size_t *) __attribute__((weak));

static size_t jemalloc_knows(const char *name)
{
	uint64_t epoch = 1;
	size_t value = 0, size = sizeof(value);

	if (mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)) ||
	    mallctl(name, &value, &size, NULL, 0))
		die("jemalloc does not know %s", name);
	return value;
}

static size_t tcmalloc_knows(const char *name)
{
	size_t value = 0;

	if (!MallocExtension_GetNumericProperty(name, &value))
		die("tcmalloc does not know %s", name);
	return value;
}

static void report_other(void)
{
	if (mallctl)
		out("own_resident %zu\nown_mapped %zu\n", jemalloc_knows("stats.resident"),
		    jemalloc_knows("stats.mapped") + jemalloc_knows("stats.retained"));
	if (MallocExtension_GetNumericProperty)
		out("own_resident %zu\nown_mapped %zu\n",
		    tcmalloc_knows("generic.total_physical_bytes"),
		    tcmalloc_knows("generic.heap_size"));
	if (mi_process_info) {
		size_t commit = 0, skip;

		mi_process_info(&skip, &skip, &skip, &skip, &skip, &commit, &skip, &skip);
		out("own_mapped %zu\n", commit);
	}
}

#ifdef __GLIBC__
/* write_info writes what malloc_info prints to a file, without allocating. */
static void write_info(const char *path)
{
	static char buffer[1 << 18]; /* for all arenas, so that nothing is written before the end */
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
	    old = dup(STDOUT_FILENO);

	if (fd < 0 || old < 0 || dup2(fd, STDOUT_FILENO) < 0)
		die("cannot write %s", path);
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (malloc_info(0, stdout) != 0 || fflush(stdout) != 0 || dup2(old, STDOUT_FILENO) < 0)
		die("malloc_info does not work");
	close(fd);
	close(old);
}
#endif

static void report_heap(void)
{
	report_other();
#ifdef __GLIBC__
#if __GLIBC__ > 2 || __GLIBC_MINOR__ >= 33
	struct mallinfo2 m = mallinfo2();
#else
	struct mallinfo before = mallinfo(); /* which has smaller numbers */
	struct {
		size_t arena, hblks, hblkhd, uordblks, fordblks, fsmblks;
	} m = { (unsigned)before.arena,	   (unsigned)before.hblks,    (unsigned)before.hblkhd,
		(unsigned)before.uordblks, (unsigned)before.fordblks, (unsigned)before.fsmblks };
#endif
	out("arena %zu\nhblks %zu\nhblkhd %zu\nuordblks %zu\nfordblks %zu\nfsmblks %zu\n", m.arena,
	    m.hblks, m.hblkhd, m.uordblks, m.fordblks, m.fsmblks);
#endif
	out("live %lu\n", live);
}

/* run starts threads that do the same work and then wait; the program itself does it, too. */
static void run(unsigned long threads, void *(*work)(void *))
{
	unsigned long i;
	pthread_t thread;

	pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
	for (i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, work, (void *)(i + 1)) != 0)
			die("no thread");
	pthread_barrier_wait(&done);
}

/* fill_cache leaves free blocks of many sizes in the cache of the thread. */
static void fill_cache(void)
{
	enum { SIZES = 60, EACH = 7 };
	void *blocks[EACH];
	unsigned i, j;

	for (i = 1; i < SIZES; i++) {
		for (j = 0; j < EACH; j++)
			blocks[j] = keep(100 + i * 15);
		for (j = 0; j < EACH; j++)
			drop(blocks[j]);
	}
}

enum { BLOCKS = 3000 };

static void *heap(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	void *blocks[BLOCKS], *small[BLOCKS];
	unsigned i;

	for (i = 0; i < BLOCKS; i++) {
		blocks[i] = keep(200 + (i * 37 + seed) % 5000);
		small[i] = keep(40);
	}
	for (i = 0; i < BLOCKS; i++)
		if (i % 3)
			drop(blocks[i]);
	fill_cache();
	keep(3 * MIB);
	keep(200 * 1024);
	if (posix_memalign(&blocks[0], 1 << 16, 700000) != 0)
		die("no aligned memory");
	memset(blocks[0], 1, 700000);
	__atomic_add_fetch(&live, malloc_usable_size(blocks[0]) + sizeof(size_t), __ATOMIC_RELAXED);
	/* Large blocks empty the fast bins, so this comes last. */
	for (i = 0; i < BLOCKS; i++)
		if (i % 4)
			drop(small[i]);
	pthread_barrier_wait(&done);
	return park();
}

static void *arena(void *arg)
{
	enum { MANY = 4000 };
	void *blocks[MANY];
	unsigned i;

	(void)arg;
	for (i = 0; i < MANY; i++)
		blocks[i] = keep(1000);
	for (i = 0; i < MANY; i++)
		if (i % 100 != 99)
			drop(blocks[i]);
	pthread_barrier_wait(&done);
	return park();
}

static void *wide(void *arg)
{
	enum { MANY = 200000 };
	void **blocks = mmap(NULL, MANY * sizeof(void *), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned i;

	(void)arg;
	for (i = 0; i < MANY; i++)
		blocks[i] = keep(16 + i % 1000);
	for (i = 0; i < MANY; i++)
		if (i % 5 == 0)
			drop(blocks[i]);
	munmap(blocks, MANY * sizeof(void *));
	pthread_barrier_wait(&done);
	return park();
}

static void *stack(void *arg)
{
	volatile char used[64 << 10];
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(used); i += 1024)
		used[i] = 1;
	sink = used[0];
	pthread_barrier_wait(&done);
	return park();
}

static void *busy(void *arg)
{
	enum { MANY = 1000 };
	void *blocks[MANY] = { 0 };
	unsigned i = (unsigned)(uintptr_t)arg;

	pthread_barrier_wait(&done);
	for (;;) {
		i = i * 1103515245 + 12345;
		free(blocks[i / 65536 % MANY]);
		blocks[i / 65536 % MANY] = malloc(16 + i / 256 % 3000);
	}
	return NULL;
}

static void pinned(unsigned long mib)
{
	unsigned long n = mib * MIB / 1024, i;
	void **blocks = mmap(NULL, n * sizeof(void *), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (i = 0; i < n; i++)
		blocks[i] = keep(1000);
	keep(5000);
	for (i = 0; i < n; i++)
		drop(blocks[i]);
	munmap(blocks, n * sizeof(void *));
}

static void leak(unsigned long mib)
{
	enum { CACHE = 10000 };
	static void *cache[CACHE];
	unsigned long i;

	for (i = 0; i < mib * MIB / 256; i++) {
		keep(240);
		if (cache[i % CACHE])
			drop(cache[i % CACHE]);
		cache[i % CACHE] = keep(500);
	}
}

/*
 * in_child returns in a child, which inherits live blocks and frees half of them. The parent
 * waits for it and ends.
 */
static void in_child(unsigned long mib)
{
	unsigned long n = mib * MIB / 1024, i;
	void **blocks = mmap(NULL, n * sizeof(void *), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child;

	for (i = 0; i < n; i++)
		blocks[i] = keep(1000);
	child = fork();
	if (child < 0)
		die("no child");
	if (child > 0) {
		if (waitpid(child, &status, 0) != child || status != 0)
			die("the child has failed");
		_exit(0);
	}
	for (i = 0; i < n; i += 2)
		drop(blocks[i]);
	munmap(blocks, n * sizeof(void *));
	leak(mib);
}

int main(int argc, char **argv)
{
	unsigned long n;

	if (argc < 3)
		die("usage: residence WHAT ARGUMENT");
	n = strcmp(argv[1], "file") ? number(argv[2]) : 0;
	if (!strcmp(argv[1], "heap"))
		run(n, heap);
	else if (!strcmp(argv[1], "arenas"))
		run(n, arena);
	else if (!strcmp(argv[1], "wide"))
		run(n, wide);
	else if (!strcmp(argv[1], "stacks"))
		run(n, stack);
	else if (!strcmp(argv[1], "busy"))
		run(n, busy);
	else if (!strcmp(argv[1], "pinned"))
		pinned(n);
	else if (!strcmp(argv[1], "leak"))
		leak(n);
	else if (!strcmp(argv[1], "fork"))
		in_child(n);
	else if (!strcmp(argv[1], "grow")) {
		leak(n);
		gate();
		leak(n);
	} else if (!strcmp(argv[1], "file"))
		file(argv[2]);
	else if (!strcmp(argv[1], "shared"))
		shared(n);
	else if (!strcmp(argv[1], "sparse"))
		sparse(n);
	else if (!strcmp(argv[1], "mapped"))
		mapped(n);
	else if (!strcmp(argv[1], "huge"))
		huge(n);
	else if (!strcmp(argv[1], "hugetlb"))
		hugetlb(n);
	else
		die("unknown: %s", argv[1]);
	if (strcmp(argv[1], "busy"))
		report_heap();
#ifdef __GLIBC__
	if (argc > 3)
		write_info(argv[3]);
#endif
	gate();
	out_flush();
	return 0;
}
