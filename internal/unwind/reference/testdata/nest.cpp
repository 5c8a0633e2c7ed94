// SPDX-License-Identifier: Apache-2.0
/*
 * nest PATH [step | backtrace]: a stack of stages, one inside the other. PATH names them
 * from the outermost on:
 *
 *  a  alloca
 *  b  the comparator of bsearch
 *  c  a catch clause
 *  d  a destructor while an exception passes
 *  f  a std::function
 *  g  the time, from the vDSO
 *  i  a handler of a signal that gets a siginfo, on the same stack
 *  j  code with a frame pointer and without tables, like a JIT compiler's
 *  k  a handler of a signal, on a stack of its own
 *  m  another stack, by makecontext
 *  o  pthread_once
 *  p  vfork, whose return address is in a register
 *  q  the comparator of qsort
 *  r  a frame that is realigned, found by an expression
 *  s  the comparator of std::sort
 *  t  a thread
 *  u  a handler of a signal, on the same stack
 *  v  the handler of SIGSEGV at a store
 *
 * The innermost stage writes "ready" to descriptor 3 and waits at 4; the
 * program then ends at once. With backtrace it first prints the result of
 * backtrace() on standard output. With step it does not wait: the stages return, between
 * two breakpoints for whoever single-steps them.
 */
#include <algorithm>
#include <alloca.h>
#include <execinfo.h>
#include <functional>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static const char *path;
static bool step, traced;
static int *volatile nowhere;
static volatile long kept;

static void next();

static NOINLINE void say_backtrace()
{
	void *all[200];
	int n = backtrace(all, 200);

	for (int i = 0; i < n; i++) {
		uint64_t address = reinterpret_cast<uintptr_t>(all[i]);

		if (write(1, &address, sizeof(address)) != sizeof(address))
			_exit(1);
	}
}

static NOINLINE void wait_here()
{
	char c;

	if (traced)
		say_backtrace();
	if (write(3, "ready\n", 6) != 6)
		_exit(1);
	kept = read(4, &c, 1);
	_exit(0);
}

static NOINLINE void with_alloca(size_t n)
{
	volatile char *p = static_cast<volatile char *>(alloca(n));

	p[0] = 1;
	next();
	kept = p[0];
}

static NOINLINE void realigned(size_t n)
{
	alignas(64) volatile char wide[64];
	volatile char *p = static_cast<volatile char *>(alloca(n));

	wide[0] = p[0] = 1;
	next();
	kept = wide[0] + p[0];
}

/* order continues to the next stage in the first comparison only. */
static NOINLINE int order(const void *a, const void *b)
{
	static const void *volatile last;

	if (last != path) {
		last = path;
		next();
	}
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static NOINLINE void sort_standard()
{
	int all[] = { 3, 1, 2, 5, 4 };

	std::sort(all, all + 5, [](const int &a, const int &b) { return order(&a, &b) < 0; });
	kept = all[0];
}

static NOINLINE void sort_c()
{
	int all[] = { 3, 1, 2, 5, 4 };

	qsort(all, 5, sizeof(all[0]), order);
	kept = all[0];
}

static NOINLINE void search()
{
	static const int all[] = { 1, 2, 3 }, key = 2;

	kept = bsearch(&key, all, 3, sizeof(all[0]), order) != nullptr;
}

struct Passed {
	~Passed() { next(); }
};

static NOINLINE void pass()
{
	Passed p;

	throw 1;
}

static NOINLINE void destruct()
{
	try {
		pass();
	} catch (int) {
		kept = 1;
	}
}

static NOINLINE void catch_it()
{
	try {
		throw 1;
	} catch (int) {
		next();
	}
}

static NOINLINE void call_function()
{
	volatile int n = 1;
	std::function<void()> f = [&n] {
		next();
		kept = n;
	};

	f();
}

static NOINLINE void look_at_clock()
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	kept = now.tv_nsec;
	next();
}

/* The label is between functions, and no directive describes how to leave it. */
extern "C" void without_tables(void (*call)());
asm(".text\n"
    ".type without_tables, @function\n"
    "without_tables:\n"
#ifdef __i386__
    "	push	%ebp\n"
    "	mov	%esp, %ebp\n"
    "	push	%ebx\n"
    "	sub	$20, %esp\n"
    "	call	*8(%ebp)\n"
    "	add	$20, %esp\n"
    "	pop	%ebx\n"
    "	pop	%ebp\n"
#else
    "	push	%rbp\n"
    "	mov	%rsp, %rbp\n"
    "	push	%rbx\n"
    "	sub	$24, %rsp\n"
    "	call	*%rdi\n"
    "	add	$24, %rsp\n"
    "	pop	%rbx\n"
    "	pop	%rbp\n"
#endif
    "	ret\n"
    ".size without_tables, . - without_tables\n");

static void handle(int)
{
	next();
}

static void handle_info(int, siginfo_t *, void *)
{
	next();
}

static NOINLINE void interrupt(int sig, int flags)
{
	static thread_local char other[1 << 16];
	struct sigaction act = {};
	stack_t stack = {};

	stack.ss_sp = other;
	stack.ss_size = sizeof(other);
	sigaltstack(&stack, nullptr);
	if (flags & SA_SIGINFO)
		act.sa_sigaction = handle_info;
	else
		act.sa_handler = handle;
	act.sa_flags = flags | SA_NODEFER;
	sigaction(sig, &act, nullptr);
	if (sig == SIGSEGV)
		*nowhere = 1;
	else
		raise(sig);
}

static NOINLINE void change_stack()
{
	const size_t size = 1 << 16;
	ucontext_t here, there;

	getcontext(&there);
	there.uc_stack.ss_sp = malloc(size);
	there.uc_stack.ss_size = size;
	there.uc_link = &here;
	makecontext(&there, next, 0);
	swapcontext(&here, &there);
	free(there.uc_stack.ss_sp);
}

static NOINLINE void have_child()
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	if (!step)
		waitpid(pid, nullptr, 0);
	next();
}

static void once()
{
	static pthread_once_t control = PTHREAD_ONCE_INIT;

	pthread_once(&control, next);
}

static void *thread(void *)
{
	next();
	return nullptr;
}

static void start_thread()
{
	pthread_t id;

	if (pthread_create(&id, nullptr, thread, nullptr) == 0)
		pthread_join(id, nullptr);
}

static NOINLINE void enter(char stage)
{
	switch (stage) {
	case 'a':
		return with_alloca(100 + stage);
	case 'b':
		return search();
	case 'c':
		return catch_it();
	case 'd':
		return destruct();
	case 'f':
		return call_function();
	case 'g':
		return look_at_clock();
	case 'i':
		return interrupt(SIGUSR2, SA_SIGINFO);
	case 'j':
		return without_tables(next);
	case 'k':
		return interrupt(SIGUSR1, SA_ONSTACK);
	case 'm':
		return change_stack();
	case 'o':
		return once();
	case 'p':
		return have_child();
	case 'q':
		return sort_c();
	case 'r':
		return realigned(100 + stage);
	case 's':
		return sort_standard();
	case 't':
		return start_thread();
	case 'u':
		return interrupt(SIGUSR2, 0);
	case 'v':
		return interrupt(SIGSEGV, 0);
	}
	abort();
}

static NOINLINE void next()
{
	char stage = *path;

	if (stage) {
		path++;
		enter(stage);
	} else if (!step) {
		wait_here();
	}
	kept = stage; /* so that no call above is a jump */
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	path = argv[1];
	step = argc > 2 && strcmp(argv[2], "step") == 0;
	traced = argc > 2 && !step;
	if (step)
		asm volatile("int3");
	next();
	if (step)
		asm volatile("int3");
	return 0;
}
