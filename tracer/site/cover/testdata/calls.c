/*
 * Calls the functions of an allocator with random arguments. Each call is between two breakpoint
 * instructions, at which a tracer reads its arguments and its result.
 *
 * calls SEED CALLS THREADS MEMORY FUNCTIONS: MEMORY is how many bytes of address space the calls
 * may add; 0 is no limit. FUNCTIONS has a bit for each function in the table.
 *
 * The symbol versions are those of the oldest library that the program is run with.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef OLD
__asm__(".symver pthread_create,pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_join,pthread_join@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver __libc_start_main,__libc_start_main@GLIBC_2.2.5");
extern int __libc_start_main(int (*)(int, char **), int, char **, void (*)(void), void (*)(void),
			     void (*)(void), void *);
int main(int argc, char **argv);
void start(long *sp)
{
	__libc_start_main(main, (int)sp[0], (char **)(sp + 1), NULL, NULL, NULL, NULL);
}
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call start\n hlt\n");
#endif

/* call_traced calls f with two arguments. */
void *call_traced(void *f, size_t a, size_t b);
__asm__(".globl call_traced, call_begin, call_end, call_ready\n"
	"call_traced: push %rbx\n mov %rdi, %r11\n mov %rsi, %rdi\n mov %rdx, %rsi\n"
	"int3\ncall_begin: call *%r11\n"
	"int3\ncall_end: pop %rbx\n ret\n"
	"ready: int3\ncall_ready: ret\n");
void ready(void);

enum kind { PLAIN, COUNTED, ALIGNED, SIZED, OPERATOR, OPERATOR_ALIGNED };
static struct {
	const char *name;
	enum kind kind;
	int share;
	void *f;
} table[] = {
	{ "malloc", PLAIN, 10 },
	{ "calloc", COUNTED, 4 },
	{ "memalign", ALIGNED, 1 },
	{ "aligned_alloc", ALIGNED, 1 },
	{ "valloc", PLAIN, 1 },
	{ "pvalloc", PLAIN, 1 },
	{ "_Znwm", OPERATOR, 2 },
	{ "_Znam", OPERATOR, 1 },
	{ "_ZnwmRKSt9nothrow_t", SIZED, 1 },
	{ "_ZnwmSt11align_val_t", OPERATOR_ALIGNED, 1 },
};

static unsigned long calls;
static int limited;

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t size_of(uint64_t *state)
{
	uint64_t x = draw(state);
	switch (x >> 60) {
	case 0:
		return (x & 0xffff) * 128; /* up to 8 MiB */
	case 1:
		return x & 0x1ffff;
	case 2:
		return x & 0x3fff;
	case 3:
		return x & 1 ? 0 : x & 31;
	default:
		return x & 0x7ff;
	}
}

#define SLOTS 512

static void *run(void *arg)
{
	uint64_t state = (uintptr_t)arg * 0x9e3779b97f4a7c15 | 1;
	static __thread void *slots[SLOTS];
	int total = 0;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		total += table[i].f ? table[i].share : 0;
	for (unsigned long n = 0; n < calls; n++) {
		void **slot = &slots[draw(&state) % (draw(&state) & 1 ? 16 : SLOTS)];
		if (*slot) {
			free(*slot);
			*slot = NULL;
			if (draw(&state) & 1)
				continue;
		}
		size_t i = 0;
		for (int k = draw(&state) % total;; i++) {
			if (table[i].f && (k -= table[i].share) < 0)
				break;
		}
		size_t a = size_of(&state), b = 0, align = (size_t)16 << draw(&state) % 9;
		if (draw(&state) % 64 == 0 && table[i].kind < OPERATOR)
			a = SIZE_MAX - (draw(&state) & 0xffff); /* fails */
		if (limited && table[i].kind >= OPERATOR)
			continue; /* they would throw */
		switch (table[i].kind) {
		case COUNTED:
			b = a;
			a = draw(&state) % 9;
			if (draw(&state) & 1) {
				size_t c = a;
				a = b;
				b = c;
			}
			break;
		case ALIGNED:
			b = a;
			a = align;
			break;
		case OPERATOR_ALIGNED:
			b = align;
			break;
		case SIZED:
			b = (size_t)&state;
			break;
		default:
			break;
		}
		*slot = call_traced(table[i].f, a, b);
	}
	for (int i = 0; i < SLOTS; i++)
		free(slots[i]);
	return NULL;
}

static int started;
static unsigned long ready_threads;

/* An allocator may fail to set up a new thread without memory; jemalloc 5.3 then crashes. */
static void *run_when_started(void *arg)
{
	free(malloc(1));
	__atomic_fetch_add(&ready_threads, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&started, __ATOMIC_ACQUIRE))
		sched_yield();
	return run(arg);
}

/* limit allows the process so many more bytes of address space. */
static int limit(unsigned long more)
{
	char text[64] = { 0 };
	int fd = open("/proc/self/statm", O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		return -1;
	close(fd);
	more += strtoul(text, NULL, 10) * sysconf(_SC_PAGESIZE);
	struct rlimit limit = { more, more };
	limited = 1;
	return setrlimit(RLIMIT_AS, &limit);
}

int main(int argc, char **argv)
{
	pthread_t threads[16];
	if (argc != 6)
		return 2;
	unsigned long seed = strtoul(argv[1], NULL, 10), count = strtoul(argv[3], NULL, 10);
	unsigned long memory = strtoul(argv[4], NULL, 10), functions = strtoul(argv[5], NULL, 10);
	calls = strtoul(argv[2], NULL, 10);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (functions >> i & 1)
			table[i].f = dlsym(RTLD_DEFAULT, table[i].name);
	if (count > 16)
		return 2;
	free(malloc(1));
	ready();
	for (unsigned long i = 0; i < count && count > 1; i++)
		if (pthread_create(&threads[i], NULL, run_when_started, (void *)(seed + i)) != 0)
			return 2;
	while (count > 1 && __atomic_load_n(&ready_threads, __ATOMIC_ACQUIRE) < count)
		sched_yield();
	if (memory && limit(memory) != 0)
		return 2;
	if (count <= 1) {
		run((void *)seed);
		_exit(0);
	}
	__atomic_store_n(&started, 1, __ATOMIC_RELEASE);
	for (unsigned long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}
