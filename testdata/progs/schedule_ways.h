/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways out of functions, threads and processes of schedule.cpp. Each makes calls of the
 * allocator before, in the middle and after.
 */
#ifndef SCHEDULE_WAYS_H
#define SCHEDULE_WAYS_H

#include "schedule_ops.h"
#include <csetjmp>
#include <csignal>
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>

static const char *plug; /* a library to load, NULL for none */
static char *self; /* the program */

static NOINLINE void jump_away(struct worker *w, jmp_buf *to)
{
	op_malloc(w);
	longjmp(*to, 1);
}

static void way_longjmp(struct worker *w)
{
	jmp_buf here;

	if (setjmp(here) == 0)
		jump_away(w, &here);
	op_free(w);
}

static __thread struct worker *signalled;
static __thread sigjmp_buf *signal_target;

/* on_signal allocates, and jumps out of the handler if there is a target. */
static void on_signal(int number)
{
	(void)number;
	op_malloc(signalled);
	op_libc(signalled);
	if (signal_target)
		siglongjmp(*signal_target, 1);
}

static void way_signal(struct worker *w)
{
	sigjmp_buf here;

	signalled = w;
	signal_target = NULL;
	if (below(w, 2)) {
		if (sigsetjmp(here, 1) == 0) {
			signal_target = &here;
			raise(SIGUSR1);
		}
	} else {
		raise(SIGUSR1);
	}
	op_free(w);
}

static NOINLINE void throw_at(struct worker *w, size_t depth)
{
	std::string kept(40 + below(w, 60), 'k');

	if (depth == 0)
		throw std::runtime_error(kept);
	throw_at(w, depth - 1);
	op_free(w);
}

static void way_exception(struct worker *w)
{
	size_t huge = a_huge_size(w);

	try {
		throw_at(w, below(w, 5));
	} catch (const std::exception &) {
		op_malloc(w);
	}
	try {
		::operator delete(::operator new(huge));
	} catch (const std::bad_alloc &) {
		op_calloc(w);
	}
	try {
		delete[] new char[huge / 2];
	} catch (const std::bad_alloc &) {
		op_free(w);
	}
}

static void free_block(void *p)
{
	free(p);
}

static pthread_key_t key;

/* What a thread frees at its end, in C++ and in C. */
struct Belongings {
	std::string name;
	void *block = malloc(70);
	~Belongings() { free(block); }
};
static thread_local Belongings belongings;

static NOINLINE void leave_thread(struct worker *w, size_t how)
{
	std::string kept(90, 'k');

	pthread_cleanup_push(free_block, malloc(33));
	if (how == 1)
		pthread_exit(malloc(44));
	while (how == 2) {
		op_malloc(w);
		pthread_testcancel();
	}
	pthread_cleanup_pop(1);
}

static void *short_thread(void *arg)
{
	struct worker w = {};
	size_t i;

	w.seed = *(uint64_t *)arg;
	free(arg);
	belongings.name.assign(50, 'b');
	pthread_setspecific(key, malloc(55));
	for (i = below(&w, 30); i > 0; i--)
		allocate(&w);
	for (i = 0; i < OWN; i++)
		free(w.own[i]);
	memset(w.own, 0, sizeof(w.own));
	leave_thread(&w, w.seed % 3);
	return malloc(44);
}

static void way_thread(struct worker *w)
{
	uint64_t *seed = (uint64_t *)malloc(sizeof(*seed)), n = draw(w) | 1;
	pthread_t t;
	void *result;
	size_t i;

	*seed = n;
	if (pthread_create(&t, NULL, short_thread, seed))
		die("no thread");
	for (i = below(w, 20); i > 0; i--)
		allocate(w);
	pthread_cancel(t);
	pthread_join(t, &result);
	if (result != PTHREAD_CANCELED)
		free(result);
}

/* way_fork makes a child, which has only one thread. */
static void way_fork(struct worker *w)
{
	pid_t child = fork();
	int i;

	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child == 0) {
		for (i = 0; i < 20; i++)
			allocate(w);
		_exit(0);
	}
	op_malloc(w);
	waitpid(child, NULL, 0);
}

static void way_vfork(struct worker *w)
{
	pid_t child = vfork();

	if (child < 0)
		die("vfork: %s", strerror(errno));
	if (child == 0) {
		free(malloc(123)); /* in the parent's memory, by another process */
		_exit(0);
	}
	op_malloc(w);
	waitpid(child, NULL, 0);
}

static void way_spawn(struct worker *w)
{
	char *args[] = { self, (char *)"spawned", NULL };
	pid_t child;

	op_malloc(w);
	if (posix_spawn(&child, self, NULL, NULL, args, environ))
		die("posix_spawn");
	waitpid(child, NULL, 0);
}

static void way_library(struct worker *w)
{
	void *library;

	if (!plug)
		return;
	library = dlopen(plug, RTLD_NOW);
	if (!library)
		die("dlopen: %s", dlerror());
	keep(w, ((void *(*)(size_t))dlsym(library, "plug_leak"))(100));
	if (dlsym(library, "no_such_name"))
		die("a name that is not there");
	dlclose(library);
}

static operation *const ways[] = { way_longjmp, way_signal, way_exception, way_thread,
				   way_library };
static operation *const processes[] = { way_fork, way_vfork, way_spawn };

#endif /* SCHEDULE_WAYS_H */
