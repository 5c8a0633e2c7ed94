// SPDX-License-Identifier: Apache-2.0
/*
 * shadow LOG N [jit]: stacks that are known without tables.
 *
 * Each function below stores its return address when it is entered, so the program knows its
 * stack up to main's return address even if backtrace() does not: this is for programs without
 * unwind tables. After the gate, in the main thread and in another one, N times: malloc of 1 to
 * 999 bytes below one to twenty functions, and free. The log of stackfile.h has the calls of
 * malloc.
 *
 * With "jit", malloc and some of the functions are called by code that was written into an
 * anonymous mapping, with frame pointers, like a just-in-time compiler's. Only x86.
 */
#include "stackfile.h"
#include <pthread.h>

enum { MOST = 64 };

static __thread void *shadow[MOST]; /* return addresses, the outermost first */
static __thread size_t depth;
static unsigned long rounds;

#define USE(memory) __asm__ volatile("" : : "r"(memory) : "memory")
#define ENTER() (shadow[depth++] = __builtin_return_address(0))
#define LEAVE() (depth--)

/* here returns an address in its caller. */
static NOINLINE void *here(void)
{
	return __builtin_return_address(0);
}

/* log_shadow logs the block p, made by the innermost function. */
static NOINLINE void log_shadow(void *p, size_t size, void *innermost)
{
	void *frames[MOST + 1];
	size_t i;

	frames[0] = innermost;
	for (i = 0; i < depth; i++)
		frames[i + 1] = shadow[depth - 1 - i];
	log_add(OP_ALLOC, 0, (uintptr_t)p, size, frames, depth + 1);
}

static NOINLINE void make(size_t size)
{
	void *p;

	ENTER();
	p = malloc(size);
	log_shadow(p, size, here());
	free(p);
	LEAVE();
}

static NOINLINE void odd(size_t size, unsigned long n);

static NOINLINE void even(size_t size, unsigned long n)
{
	char room[200];

	ENTER();
	USE(room);
	if (n == 0)
		make(size);
	else
		odd(size, n - 1);
	USE(room);
	LEAVE();
}

static NOINLINE void odd(size_t size, unsigned long n)
{
	ENTER();
	if (n == 0)
		make(size);
	else
		even(size, n - 1);
	LEAVE();
}

#ifdef __x86_64__

/*
 * The code of
 *	void *jit(void *(*function)(size_t), size_t argument, void **noted)
 * which stores its return address and returns function(argument).
 */
static const unsigned char jit_code[] = {
	0x55, /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
	0x48, 0x8b, 0x4d, 0x08, /* mov 8(%rbp),%rcx */
	0x48, 0x89, 0x0a, /* mov %rcx,(%rdx) */
	0x48, 0x89, 0xf8, /* mov %rdi,%rax */
	0x48, 0x89, 0xf7, /* mov %rsi,%rdi */
	0xff, 0xd0, /* call *%rax */
	0x5d, /* pop %rbp */
	0xc3, /* ret */
};

enum { JIT_RETURN = 19, JIT_CODE = 4096 };

static void *(*jit)(void *(*function)(size_t), size_t argument, void **noted);

static void jit_open(void)
{
	char *p = mmap(NULL, JIT_CODE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("no memory for code");
	memcpy(p, jit_code, sizeof(jit_code));
	if (mprotect(p, JIT_CODE, PROT_READ | PROT_EXEC))
		die("no executable memory");
	memcpy(&jit, &p, sizeof(jit));
}

/* jit_make calls malloc from the generated code. */
static NOINLINE void *jit_make(size_t size)
{
	void *p;

	ENTER();
	p = jit(malloc, size, &shadow[depth]);
	depth++;
	log_shadow(p, size, (char *)(uintptr_t)jit + JIT_RETURN);
	depth--;
	LEAVE();
	return p;
}

/* jit_nested calls n functions from the generated code, which call it again. */
static NOINLINE void *jit_nested(size_t size)
{
	void *p;

	ENTER();
	depth++;
	if (size % 5 == 0)
		p = jit(jit_make, size, &shadow[depth - 1]);
	else
		p = jit(jit_nested, size - 1, &shadow[depth - 1]);
	depth--;
	LEAVE();
	return p;
}

#else
#define jit_open() die("no code for this processor")
#define jit_nested(size) ((void)(size), NULL)
#endif

static int use_jit;

static NOINLINE void run(void)
{
	unsigned long i;

	ENTER();
	for (i = 0; i < rounds; i++) {
		if (use_jit)
			free(jit_nested(i % 999 + 1));
		else
			even(i % 999 + 1, i % 20);
	}
	LEAVE();
}

static void *thread(void *arg)
{
	ENTER();
	run();
	LEAVE();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t other;

	if (argc < 3)
		die("usage: shadow LOG N [jit]");
	rounds = number(argv[2]);
	use_jit = argc > 3;
	if (use_jit)
		jit_open();
	log_open(argv[1]);
	gate();
	ENTER();
	run();
	LEAVE();
	if (pthread_create(&other, NULL, thread, NULL) || pthread_join(other, NULL))
		die("no thread");
	_exit(0);
}
