// SPDX-License-Identifier: Apache-2.0
/*
 * interrupted HOW N FUNCTION...: what a signal handler notices within the allocator. Only x86-64.
 *
 * After the gate the program calls each FUNCTION (malloc, calloc, free, realloc, posix_memalign) N
 * times, logged, in a thread that executes one instruction of the call at a time: the processor
 * raises SIGTRAP after each (interrupted.h). HOW is what the handler does:
 *
 *	word		after each instruction, reads the return address of the call
 *	backtrace	after each instruction, finds its callers by backtrace()
 *	unwind		after the first instructions, leaves the call by an exception
 *	altstack	after the first instructions, allocates, on a stack of its own that is
 *			above the thread's
 *	page		nothing; the calls are not interrupted
 *
 * The report has the number of calls in which something was not as without a tracer: a return
 * address or a caller was another one, nothing caught the exception, or there was a mapping of the
 * kernel's with the name [uprobes] afterwards.
 */
#include "interrupted.h"
#include <execinfo.h>
#include <malloc.h>
#include <unwind.h>

enum { EARLY = 3, FRAMES = 32 };

static unsigned long wanted, noticed;
static bool wrong; /* the present call noticed something */
static void *callers[FRAMES];
static int callers_length;
static struct _Unwind_Exception exception;
static void (*how)(ucontext_t *);

static void read_word(ucontext_t *)
{
	if (*stepped_slot != stepped_return)
		wrong = true;
}

static void find_callers(ucontext_t *)
{
	void *found[FRAMES];
	int n = backtrace(found, FRAMES), i = 0;

	while (i < n && found[i] != stepped_return)
		i++;
	/* Next is where make calls stepped, and then what make itself finds. */
	if (n - i - 2 != callers_length - 1 ||
	    memcmp(&found[i + 2], &callers[1], sizeof(void *) * (size_t)(callers_length - 1)))
		wrong = true;
}

static void leave_call(ucontext_t *)
{
	if (steps != EARLY)
		return;
	/* It returns only if nothing catches the exception; a throw then ends the program. */
	_Unwind_RaiseException(&exception);
	wrong = true;
}

static void allocate(ucontext_t *)
{
	if (steps == EARLY)
		do_free(&l, do_realloc(&l, do_malloc(&l, 300), 500));
}

static void nothing(ucontext_t *) {}

static bool has_kernel_page()
{
	static char maps[1 << 16];
	size_t length = 0;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY);

	if (fd < 0)
		die("no maps");
	while ((n = read(fd, maps + length, sizeof(maps) - 1 - length)) > 0)
		length += (size_t)n;
	close(fd);
	return strstr(maps, "[uprobes]") != NULL;
}

/* make makes a call and returns its result; with "unwind" it leaves it. */
static NOINLINE void *make(void *function, uintptr_t a, uintptr_t b, uintptr_t c)
{
	steps = 0;
	if (how == nothing)
		return ((void *(*)(uintptr_t, uintptr_t, uintptr_t))function)(a, b, c);
	callers_length = backtrace(callers, FRAMES);
	try {
		return stepped(function, a, b, c);
	} catch (...) {
		return NULL;
	}
}

/* Some blocks are kept, so that the next call finds none in the thread's cache. */
static void *kept[1024];
static size_t kept_length;

static void keep_or_free(void *p, unsigned long i)
{
	if (i % 4 == 0 && kept_length < sizeof(kept) / sizeof(kept[0]))
		kept[kept_length++] = p;
	else
		do_free(&l, p);
}

static void call_once(const char *what, unsigned long i)
{
	size_t n = i % 16 == 5 ? 200000 : 24 + i % 8 * 200;
	void *p, *q = NULL;

	if (!strcmp(what, "malloc")) {
		p = note_new(&l, FN_MALLOC, make((void *)malloc, n, 0, 0), n);
	} else if (!strcmp(what, "calloc")) {
		p = note_new(&l, FN_CALLOC, make((void *)calloc, i % 8 + 1, 24, 0),
			     (i % 8 + 1) * 24);
	} else if (!strcmp(what, "free")) {
		p = do_malloc(&l, n);
		make((void *)free, (uintptr_t)p, 0, 0);
		note(&l, FN_FREE, OP_FREE, (uintptr_t)p, 0, 0);
		return;
	} else if (!strcmp(what, "realloc")) {
		p = do_malloc(&l, n);
		q = make((void *)realloc, (uintptr_t)p, n + 300, 0);
		if (q)
			p = note_moved(&l, FN_REALLOC, (uintptr_t)p, q, n + 300, 0);
	} else {
		int failed = make((void *)posix_memalign, (uintptr_t)&q, 64, n) != NULL;

		p = note_new(&l, FN_POSIX_MEMALIGN, failed ? NULL : q, n);
	}
	if (p)
		keep_or_free(p, i);
}

static char **functions;

static void run()
{
	gate();
	for (char **function = functions; *function; function++) {
		for (unsigned long i = 0; i < wanted; i++) {
			wrong = false;
			call_once(*function, i);
			if (how == nothing && has_kernel_page())
				wrong = true;
			noticed += wrong;
		}
	}
	do_free(&l, do_malloc(&l, 77));
}

static const struct {
	const char *name;
	void (*react)(ucontext_t *);
} all[] = {
	{ "word", read_word },	  { "backtrace", find_callers }, { "unwind", leave_call },
	{ "altstack", allocate }, { "page", nothing },
};

int main(int argc, char **argv)
{
	char more[64];

	if (argc < 4)
		die("usage: interrupted HOW N FUNCTION...");
	for (const auto &one : all)
		if (!strcmp(one.name, argv[1]))
			how = one.react;
	if (!how)
		die("no way '%s'", argv[1]);
	wanted = number(argv[2]);
	functions = argv + 3;
	ledger_open(&l, wanted * 8 * (size_t)(argc - 3) + 10);
	/* The first backtrace loads a library. */
	callers_length = backtrace(callers, FRAMES);
	interrupted_thread(run, how, how == allocate);
	snprintf(more, sizeof(more), "\"noticed\":%lu", noticed);
	report(&l, 1, more);
	_exit(0);
}
