// SPDX-License-Identifier: Apache-2.0
/*
 * churn THREADS [FILE]: threads that allocate endlessly and check their blocks.
 *
 * After the gate each thread makes calls of malloc, calloc, realloc and free, at random from
 * a fixed seed. It fills its blocks and checks their contents before it gives them up. A
 * byte or the end of file after the gate's byte ends that: each thread frees its blocks. The
 * threads exist before the gate and have not ended when the program does.
 *
 * FILE gets two numbers of 64 bits for each thread: how many calls it has begun, and how many
 * have ended. They are right at any moment, even if the program was killed. On SIGUSR2 the
 * program executes /bin/true. The JSON also has "wrong", the blocks with wrong contents.
 */
#include "prog.h"
#include <pthread.h>
#include <signal.h>

enum { BLOCKS = 64, LARGEST = 2000 };

struct counts {
	volatile uint64_t begun, over;
};

struct block {
	unsigned char *p;
	size_t size;
	unsigned char with;
};

static pthread_barrier_t start, end;
static struct counts *counts;
static struct ledger *ledgers;
static uint64_t wrong;
static volatile int stop;

static void fill(struct block *b, unsigned char *p, size_t size, unsigned char with)
{
	if (!p)
		die("no memory");
	b->p = p;
	b->size = size;
	b->with = with;
	memset(p, with, size);
}

static void check(const struct block *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (b->p[i] == b->with)
			continue;
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		return;
	}
}

static void change(struct ledger *l, struct counts *c, struct block *b, uint64_t random)
{
	size_t size = random >> 8 & 1 ? random >> 16 & 63 : (random >> 16) % LARGEST, old = b->size;
	unsigned char with = (unsigned char)(random >> 40);

	size++;
	c->begun++;
	if (!b->p) {
		fill(b, (unsigned char *)(random & 1 ? do_malloc(l, size) : do_calloc(l, 1, size)),
		     size, with);
	} else if (random & 1) {
		check(b, old);
		do_free(l, b->p);
		b->p = NULL;
	} else {
		unsigned char was = b->with;
		unsigned char *p = (unsigned char *)do_realloc(l, b->p, size);

		b->p = p;
		b->with = was;
		check(b, old < size ? old : size);
		fill(b, p, size, with);
	}
	c->over++;
}

static void *run(void *arg)
{
	struct ledger *l = (struct ledger *)arg;
	struct counts *c = &counts[l - ledgers];
	uint64_t random = 88172645463325252ull + (uint64_t)(l - ledgers);
	struct block blocks[BLOCKS];

	memset(blocks, 0, sizeof(blocks));
	l->tid = thread_id();
	pthread_barrier_wait(&start);
	while (!stop) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		change(l, c, &blocks[random >> 48 & (BLOCKS - 1)], random);
	}
	for (int i = 0; i < BLOCKS; i++) {
		if (!blocks[i].p)
			continue;
		check(&blocks[i], blocks[i].size);
		c->begun++;
		do_free(l, blocks[i].p);
		c->over++;
	}
	pthread_barrier_wait(&end);
	return park();
}

static void become_true(int sig)
{
	(void)sig;
	execl("/bin/true", "true", (char *)NULL);
	_exit(96);
}

int main(int argc, char **argv)
{
	unsigned long threads, i;
	size_t length;
	char more[40];
	int fd = -1;

	if (argc < 2)
		die("usage: churn THREADS [FILE]");
	threads = number(argv[1]);
	signal(SIGUSR2, become_true);
	length = threads * sizeof(*counts);
	if (argc > 2) {
		fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || ftruncate(fd, (off_t)length))
			die("no file for the counts");
	}
	counts = (struct counts *)mmap(NULL, length, PROT_READ | PROT_WRITE,
				       fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (counts == MAP_FAILED)
		die("no memory for the counts");
	ledgers = new_ledgers(threads);
	pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
	for (i = 0; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, run, &ledgers[i]))
			die("no thread");
	}
	gate();
	pthread_barrier_wait(&start);
	read_byte(GATE_GO);
	stop = 1;
	pthread_barrier_wait(&end);
	snprintf(more, sizeof(more), "\"wrong\":%llu", (unsigned long long)wrong);
	report(ledgers, threads, more);
	_exit(0);
}
