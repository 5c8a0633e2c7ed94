// SPDX-License-Identifier: Apache-2.0
/*
 * harmless HOW N: does N times what a tracer could disturb, and prints the result. The
 * output is the same each time, with and without a tracer. It allocates in between, below
 * frames that are left in unusual ways. HOW is one of
 *
 *	badalloc	new that fails, whose exception is caught
 *	handler		new that fails in a new handler, which throws itself
 *	exceptions	exceptions through frames that free their blocks
 *	backtrace	looks at its own callers and its own code
 *	fibers		coroutines with stacks of their own (swapcontext)
 *	altstack	signal handlers on a stack of their own, which allocate
 *	jumps		longjmp, siglongjmp out of handlers, also out of realloc
 *	signals		handlers that interrupt the allocator
 *	cancel		threads that are cancelled, and threads that end by themselves
 *
 * The exit code is 0.
 */
#include "harmless.h"
#include "pair.h"
#include "prog.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

static unsigned long rounds;
static volatile size_t huge = SIZE_MAX / 2 + 1;

/* use keeps the compiler from omitting an allocation. */
static ALWAYS_INLINE void use(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

static void badalloc()
{
	unsigned long caught = 0;

	for (unsigned long i = 0; i < rounds; i++) {
		try {
			use(::operator new(huge));
		} catch (const std::bad_alloc &) {
			caught++;
		}
		pair(i % 3000);
	}
	out("badalloc %lu\n", caught);
}

struct given_up {
	unsigned long round;
};

static unsigned long handled;

static void give_up()
{
	throw given_up{ handled++ };
}

static void handler()
{
	unsigned long caught = 0, sum = 0;

	std::set_new_handler(give_up);
	for (unsigned long i = 0; i < rounds; i++) {
		try {
			use(::operator new(huge));
		} catch (const given_up &g) {
			caught++;
			sum += g.round;
		}
	}
	out("handler %lu %lu\n", caught, sum);
}

struct block {
	void *p;
	explicit block(size_t n) : p(malloc(n)) {}
	~block() { free(p); }
};

static NOINLINE unsigned long descend(unsigned depth)
{
	block b(depth * 10 + 1);

	use(b.p);
	if (!depth)
		throw std::string("a text that is too long to fit into the object itself");
	return descend(depth - 1) + 1;
}

static void exceptions()
{
	unsigned long length = 0;

	for (unsigned long i = 0; i < rounds; i++) {
		try {
			length += descend((unsigned)(i % 40));
		} catch (const std::string &s) {
			length += s.size();
		}
	}
	out("exceptions %lu\n", length);
}

/* Coroutines: each allocates, switches, and frees its blocks on its own stack. */
enum { FIBERS = 8, FIBER_STACK = 64 << 10 };

static ucontext_t fiber[FIBERS], scheduler;
static unsigned long switched[FIBERS];

static void run_fiber(int self)
{
	for (unsigned long i = 0; i < rounds; i++) {
		void *p = malloc(100 + (size_t)self);
		void *q = realloc(malloc(10), 5000);

		use(p);
		swapcontext(&fiber[self], i % 2 ? &scheduler : &fiber[(self + 1) % FIBERS]);
		switched[self]++;
		free(q);
		free(p);
	}
	for (;;)
		swapcontext(&fiber[self], &scheduler);
}

static void fibers()
{
	volatile unsigned long all = 0;
	volatile bool done = false;

	/* Some stacks are on the heap, below the others. */
	for (int i = 0; i < FIBERS; i++) {
		void *stack = malloc(FIBER_STACK);

		if (i % 2)
			stack = mmap(NULL, FIBER_STACK, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		getcontext(&fiber[i]);
		fiber[i].uc_stack.ss_sp = stack;
		fiber[i].uc_stack.ss_size = FIBER_STACK;
		fiber[i].uc_link = &scheduler;
		makecontext(&fiber[i], (void (*)())run_fiber, 1, i);
	}
	while (!done) {
		done = true;
		for (int i = 0; i < FIBERS; i++) {
			if (switched[i] == rounds)
				continue;
			done = false;
			swapcontext(&scheduler, &fiber[i]);
		}
	}
	for (int i = 0; i < FIBERS; i++)
		all = all + switched[i];
	out("fibers %lu\n", all);
}

static volatile sig_atomic_t handlers;
static sigjmp_buf behind;

static void catch_signal(int sig, void (*function)(int), int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = function;
	action.sa_flags = flags;
	if (sigaction(sig, &action, NULL))
		die("no handler");
}

static void use_altstack(void *memory, size_t size)
{
	stack_t stack;

	memset(&stack, 0, sizeof(stack));
	stack.ss_sp = memory;
	stack.ss_size = size;
	if (sigaltstack(&stack, NULL))
		die("no stack for signals");
}

static void allocating(int)
{
	pair(500);
	use(realloc(NULL, 0));
	handlers = handlers + 1;
}

static void *altstack_thread(void *memory)
{
	use_altstack(memory, FIBER_STACK);
	for (unsigned long i = 0; i < rounds; i++) {
		pair(10);
		raise(SIGUSR1);
	}
	return NULL;
}

static void altstack()
{
	/* One below the thread's stack, and one above. */
	void *above =
		mmap(NULL, FIBER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	catch_signal(SIGUSR1, allocating, SA_ONSTACK);
	altstack_thread(malloc(FIBER_STACK));
	pthread_t t;
	if (pthread_create(&t, NULL, altstack_thread, above))
		die("no thread");
	pthread_join(t, NULL);
	out("altstack %d\n", (int)handlers);
}

static void jump(int)
{
	pair(20);
	siglongjmp(behind, 1);
}

static volatile int armed = 1;

static NOINLINE void deep_jump(jmp_buf to, unsigned depth)
{
	pair(depth + 1);
	if (depth > 0)
		deep_jump(to, depth - 1);
	else if (armed)
		longjmp(to, 1);
	pair(1);
}

static void jumps()
{
	static jmp_buf to;
	static volatile unsigned long plain, signalled, aborted, faulted;
	static int *volatile wild = (int *)(uintptr_t)8;
	static char no_block[64] __attribute__((aligned(16)));

	catch_signal(SIGUSR1, jump, 0);
	catch_signal(SIGABRT, jump, 0);
	catch_signal(SIGSEGV, jump, 0);
	quiet(); /* discard the C library's message about the bad block */
	for (volatile unsigned long i = 0; i < rounds; i = i + 1) {
		if (setjmp(to))
			plain = plain + 1;
		else
			deep_jump(to, (unsigned)(i % 30));
		if (sigsetjmp(behind, 1))
			signalled = signalled + 1;
		else
			raise(SIGUSR1);
		if (sigsetjmp(behind, 1))
			faulted = faulted + 1;
		else
			*wild = 1;
		/* Not a block: realloc detects that and aborts, from inside. */
		if (i % 4 == 0) {
			if (sigsetjmp(behind, 1))
				aborted = aborted + 1;
			else
				use(realloc(no_block + 24, 1000));
		}
	}
	out("jumps %lu %lu %lu %lu\n", plain, signalled, faulted, aborted);
}

static void counting(int)
{
	handlers = handlers + 1;
}

static void signals()
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = {};
	unsigned long made = 0;

	catch_signal(SIGALRM, counting, SA_RESTART);
	if (setitimer(ITIMER_REAL, &often, NULL))
		die("no timer");
	while (made < rounds * 50 || handlers < 20) {
		pair(made % 5000);
		made++;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	out("signals %d\n", made >= rounds * 50);
}

static void tidy(void *block)
{
	free(block);
}

static void *cancelled(void *)
{
	void *p = malloc(77);

	pthread_cleanup_push(tidy, p);
	for (;;) {
		pair(30);
		pthread_testcancel();
	}
	pthread_cleanup_pop(1);
	return NULL;
}

static void *leaving(void *p)
{
	pair(60);
	pthread_exit(p);
}

static void cancel()
{
	unsigned long canceled = 0, left = 0;

	for (unsigned long i = 0; i < rounds; i++) {
		pthread_t a, b;
		void *result;

		if (pthread_create(&a, NULL, cancelled, NULL) ||
		    pthread_create(&b, NULL, leaving, &left))
			die("no thread");
		pthread_cancel(a);
		pthread_join(a, &result);
		canceled += result == PTHREAD_CANCELED;
		pthread_join(b, &result);
		left += result == &left;
	}
	out("cancel %lu %lu\n", canceled, left);
}

static const struct {
	const char *name;
	void (*run)();
} all[] = {
	{ "badalloc", badalloc },     { "handler", handler }, { "exceptions", exceptions },
	{ "backtrace", look_around }, { "fibers", fibers },   { "altstack", altstack },
	{ "jumps", jumps },	      { "signals", signals }, { "cancel", cancel },
};

int main(int argc, char **argv)
{
	if (argc < 3)
		die("usage: harmless HOW N");
	rounds = look_rounds = number(argv[2]);
	gate();
	for (const auto &one : all) {
		if (strcmp(one.name, argv[1]))
			continue;
		one.run();
		out_flush();
		return 0;
	}
	die("no way '%s'", argv[1]);
}
