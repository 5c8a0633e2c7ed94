// SPDX-License-Identifier: Apache-2.0
/*
 * functions THREADS ROUNDS [WAY]: threads that call functions and record each call.
 *
 * Each thread, ROUNDS times, calls functions with arguments of all kinds, in registers and on
 * the stack, with readable and unreadable texts; a function that calls itself; one that ends
 * in a jump to another one, and one that does so through a pointer; and one that calls itself
 * and is left by longjmp.
 *
 * Output: for each call "TID enter NAME ARGUMENTS" and "TID leave NAME RESULT", in the order
 * of the thread, in the spelling of a trace. A function that was left has only the first
 * line. peek is not printed: its argument points to a pair that has the round, after a
 * pointer to a pair that has the round plus 7.
 *
 * WAY is "leaderless": the main thread also calls them, and ends before the others begin; or
 * one of the ways of sandbox.h: then the main thread alone calls them.
 */
#include "sandbox.h"
#include <pthread.h>
#include <setjmp.h>

/* clang makes no clones, and knows no attribute against them. */
#ifdef __clang__
#define TRACED __attribute__((noinline, used, visibility("default")))
#else
#define TRACED __attribute__((noinline, noclone, used, visibility("default")))
#endif

enum { LOG = 1 << 20 };

static unsigned long rounds;
static volatile int leaves = 1;
static __thread char *written;
static __thread size_t length;
static __thread pid_t tid;
static __thread jmp_buf back;

static __attribute__((format(printf, 1, 2))) void tell(const char *format, ...)
{
	va_list args;
	int n = snprintf(written + length, LOG - length, "%d ", (int)tid);

	length += (size_t)n;
	va_start(args, format);
	n = vsnprintf(written + length, LOG - length, format, args);
	va_end(args);
	length += (size_t)n;
	if (length + 2048 > LOG)
		die("the log is full");
	written[length++] = '\n';
}

struct pair {
	int first;
	struct pair *next;
};

TRACED long add(int a, long b, char c, _Bool d)
{
	long sum = a + b;

	tell("enter add d:%d x:%ld c:%d b:%d", a, b, c, d);
	tell("leave add x:%ld", sum);
	return sum;
}

TRACED int many(int a, int b, int c, int d, int e, int f, int g, const char *h, int i)
{
	tell("enter many d:%d d:%d d:%d d:%d d:%d d:%d d:%d s:\"%s\" d:%d", a, b, c, d, e, f, g, h,
	     i);
	tell("leave many d:%d", a + i);
	return a + i;
}

/* texts logs pointers where no text can be read; a long text is truncated to 511 bytes. */
TRACED const char *texts(const char *a, const char *b, const char *c)
{
	tell("enter texts s:\"%s\" p:0x%lx s:\"%.511s\"", a, (unsigned long)b, c);
	tell("leave texts s:\"%s\"", a);
	return a;
}

TRACED void nothing(void *p)
{
	tell("enter nothing p:0x%lx", (unsigned long)p);
	tell("leave nothing");
}

TRACED unsigned long again(unsigned n)
{
	unsigned long below;

	tell("enter again d:%u", n);
	below = n ? again(n - 1) + n : 0;
	tell("leave again x:%lu", below);
	return below;
}

TRACED int second(int n)
{
	tell("enter second d:%d", n);
	tell("leave second d:%d", n * 2);
	return n * 2;
}

/* first ends in a jump to second. Its caller records its end. */
TRACED int first(int n)
{
	tell("enter first d:%d", n);
	return second(n + 1);
}

/* through ends in a jump to the function f. */
TRACED int through(int (*f)(int), int n)
{
	tell("enter through p:0x%lx d:%d", (unsigned long)f, n);
	return f(n);
}

TRACED int leaper(int n)
{
	int below;

	tell("enter leaper d:%d", n);
	if (n == 0 && leaves)
		longjmp(back, 1);
	below = leaper(n - 1);
	__asm__ volatile("" : "+r"(below)); /* otherwise the compiler makes a loop of it */
	return below + 1;
}

TRACED void peek(struct pair *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

static void calls(unsigned long i)
{
	static char longer[600];
	struct pair inner = { (int)i + 7, NULL }, outer = { (int)i, &inner };
	int n = (int)i;

	memset(longer, 'y', sizeof(longer) - 1);
	add(-n, 1000L + n, 'c', n & 1);
	many(1, -2, 3, 4, 5, 6, n, "on the stack", 9);
	texts("here", (const char *)0x10, longer);
	texts("", NULL, "it is");
	nothing(&tid);
	again(20);
	tell("leave first d:%d", first(n));
	tell("leave through d:%d", through(second, n));
	if (!setjmp(back))
		leaper(3);
	peek(&outer);
	add(0, 0, 0, 0);
}

/* begin makes room for the calling thread's log. */
static char *begin(void)
{
	written =
		(char *)mmap(NULL, LOG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (written == (char *)MAP_FAILED)
		die("no memory for the log");
	tid = thread_id();
	return written;
}

static void rounds_of_calls(void)
{
	unsigned long i;

	for (i = 0; i < rounds; i++)
		calls(i);
}

static void *run(void *arg)
{
	*(char **)arg = begin();
	rounds_of_calls();
	return NULL;
}

static pthread_t first_thread;
static char *logs[17];
static unsigned long threads;

/* call_in_threads also waits for the threads, and writes what they recorded. */
static void *call_in_threads(void *arg)
{
	pthread_t all[16];
	unsigned long i;

	if (arg)
		pthread_join(first_thread, NULL);
	for (i = 0; i < threads; i++)
		if (pthread_create(&all[i], NULL, run, &logs[i]))
			die("no thread");
	for (i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	for (i = 0; i < 17; i++)
		if (logs[i])
			write_all(STDOUT_FILENO, logs[i], strlen(logs[i]));
	_exit(0);
}

static void *leave(void *arg)
{
	pthread_exit(arg);
}

/* leaderless ends the main thread and leaves the others running. */
static void leaderless(void)
{
	pthread_t t;

	first_thread = pthread_self();
	/* Load what glibc loads at the first pthread_exit before the gate. */
	if (pthread_create(&t, NULL, leave, NULL))
		die("no thread");
	pthread_join(t, NULL);
	logs[16] = begin();
	if (pthread_create(&t, NULL, call_in_threads, &logs))
		die("no thread");
	gate();
	rounds_of_calls();
	pthread_exit(NULL);
}

static void sandboxed(const char *way)
{
	begin();
	forbid(way);
	sandbox_gate();
	rounds_of_calls();
	write_all(STDOUT_FILENO, written, length);
	syscall(SYS_exit, 0);
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc > 4 || number(argv[1]) > 16)
		die("usage: functions THREADS ROUNDS [WAY]");
	threads = number(argv[1]);
	rounds = number(argv[2]);
	if (argc == 4 && strcmp(argv[3], "leaderless") == 0)
		leaderless();
	else if (argc == 4)
		sandboxed(argv[3]);
	gate();
	call_in_threads(NULL);
	return 0;
}
