// SPDX-License-Identifier: Apache-2.0
/*
 * threads_cxx ROUNDS: threads that use all of C++'s ways to allocate, logged with the function
 * and line of the call.
 *
 * After the gate each of the THREADS threads does ROUNDS times: blocks of the allocator's
 * functions; new and delete of objects and arrays; a chain of reallocs, one of which changes
 * nothing and one of which frees; texts of strdup; a vector, a string and a shared pointer; and
 * blocks that the next thread frees, which then makes blocks of the same sizes. At the end each
 * leaves a block of 100 bytes plus its number.
 *
 * The threads exist before the gate and call the allocator only after it. The log does not
 * contain what the program cannot know of a call: the line of frees at the end of a block.
 */
#include "prog.h"
#include <memory>
#include <new>
#include <pthread.h>
#include <string>
#include <vector>

enum { THREADS = 5, HANDED = 8, CALLS_PER_ROUND = 160 };

static pthread_barrier_t together;
static struct ledger *ledgers;
static unsigned long rounds;
static void *handed[THREADS][HANDED];

/* The calls. Each is on one line of the function that is logged. */
#define MADE(f, to, expression, n) \
	((to) = (expression),      \
	 note_at(l, f, (to) ? OP_ALLOC : OP_NONE, 0, (uintptr_t)(to), n, __func__, __LINE__))
#define FREED(f, old, statement)                                                       \
	do {                                                                           \
		uintptr_t was = (uintptr_t)(old);                                      \
		statement;                                                             \
		note_at(l, f, was ? OP_FREE : OP_NONE, was, 0, 0, __func__, __LINE__); \
	} while (0)
#define MOVED(to, old, n)                                                                \
	do {                                                                             \
		uintptr_t was = (uintptr_t)(old);                                        \
		(to) = realloc(old, n);                                                  \
		note_at(l, FN_REALLOC, (to) ? (was ? OP_MOVE : OP_ALLOC) : OP_FREE, was, \
			(uintptr_t)(to), n, __func__, __LINE__);                         \
	} while (0)

extern "C" {

NOINLINE void use_blocks(struct ledger *l, size_t n)
{
	void *a, *b, *c, *d = NULL;

	MADE(FN_MALLOC, a, malloc(n), n);
	MADE(FN_CALLOC, b, calloc(n, 3), n * 3);
	MADE(FN_ALIGNED_ALLOC, c, aligned_alloc(64, 640), 640);
	FREED(FN_FREE, b, free(b));
	MADE(FN_POSIX_MEMALIGN, d, posix_memalign(&d, 256, n) ? NULL : d, n);
	FREED(FN_FREE, d, free(d));
	MADE(FN_MALLOC, b, malloc(0), 0);
	FREED(FN_FREE, a, free(a));
	FREED(FN_FREE, b, free(b));
	FREED(FN_FREE, c, free(c));
	FREED(FN_FREE, NULL, free(NULL));
}

struct Thing {
	long values[5];
	explicit Thing(long v) : values{ v } {}
};

NOINLINE void use_objects(struct ledger *l, size_t n)
{
	Thing *one, *none;
	char *many;

	MADE(FN_NEW, one, new Thing((long)n), sizeof(Thing));
	MADE(FN_NEW, many, new char[n + 200], n + 200);
	FREED(FN_DELETE, one, delete one);
	MADE(FN_NEW, none, new (std::nothrow) Thing(1), sizeof(Thing));
	FREED(FN_DELETE, many, delete[] many);
	FREED(FN_DELETE, none, delete none);
}

NOINLINE void use_realloc(struct ledger *l, size_t n)
{
	void *p, *end;

	MOVED(p, NULL, n);
	for (size_t size = n; size < n * 300; size *= 3) {
		MOVED(p, p, size * 3);
	}
	MOVED(p, p, 40);
	MOVED(p, p, 40); /* changes nothing */
	MOVED(end, p, 0);
	(void)end;
}

NOINLINE void use_texts(struct ledger *l, const char *text)
{
	char *copy, *part;

	MADE(FN_STRDUP, copy, strdup(text), strlen(text) + 1);
	MADE(FN_STRDUP, part, strndup(text, 3), 4);
	FREED(FN_FREE, copy, free(copy));
	FREED(FN_FREE, part, free(part));
}

NOINLINE void *noted_new(struct ledger *l, size_t n)
{
	void *p;

	MADE(FN_NEW, p, ::operator new(n), n);
	return p;
}

NOINLINE void noted_delete(struct ledger *l, void *p)
{
	FREED(FN_DELETE, p, ::operator delete(p));
}

NOINLINE void hand_over(struct ledger *l, void **to, size_t n)
{
	for (size_t i = 0; i < HANDED; i++) {
		if (i % 2) {
			MADE(FN_MALLOC, to[i], malloc(n + 16 * i), n + 16 * i);
		} else {
			MADE(FN_NEW, to[i], ::operator new(n + 16 * i), n + 16 * i);
		}
	}
}

NOINLINE void take_over(struct ledger *l, void **from)
{
	for (size_t i = 0; i < HANDED; i++) {
		if (i % 2) {
			FREED(FN_FREE, from[i], free(from[i]));
		} else {
			FREED(FN_DELETE, from[i], ::operator delete(from[i]));
		}
	}
}

NOINLINE void *leave(struct ledger *l, size_t n)
{
	void *p;

	MADE(FN_MALLOC, p, malloc(n), n);
	return p;
}

} /* extern "C" */

/* Noted is an allocator that logs its calls, with their place. */
template <typename T> struct Noted {
	using value_type = T;
	struct ledger *l;

	explicit Noted(struct ledger *l) : l(l) {}
	template <typename U> Noted(const Noted<U> &other) : l(other.l) {}
	T *allocate(size_t n) { return static_cast<T *>(noted_new(l, n * sizeof(T))); }
	void deallocate(T *p, size_t) { noted_delete(l, p); }
	template <typename U> bool operator==(const Noted<U> &) const { return true; }
	template <typename U> bool operator!=(const Noted<U> &) const { return false; }
};

/* regrown logs that a container has replaced its memory. */
static ALWAYS_INLINE void regrown(struct ledger *l, const void *&was, const void *now, size_t n,
				  const char *caller, int line)
{
	if (was == now)
		return;
	note_at(l, FN_NEW, OP_ALLOC, 0, (uintptr_t)now, n, caller, line);
	if (was)
		note_at(l, FN_DELETE, OP_FREE, (uintptr_t)was, 0, 0, caller, line);
	was = now;
}
#define GROWN(what, statement, more)                                                         \
	(statement,                                                                          \
	 regrown(l, was, (what).data(), (what).capacity() * sizeof(*(what).data()) + (more), \
		 __func__, __LINE__))

extern "C" NOINLINE void use_containers(struct ledger *l, size_t n)
{
	const void *was = NULL;
	{
		std::vector<int> numbers;
		for (size_t i = 0; i < n; i++) {
			GROWN(numbers, numbers.push_back((int)i), 0);
		}
	}
	note(l, FN_DELETE, OP_FREE, (uintptr_t)was, 0, 0);

	was = NULL;
	{
		std::string text;
		GROWN(text, text.assign(100, 'x'), 1);
		for (size_t i = 0; i < 5; i++) {
			GROWN(text, text += text, 1);
		}
	}
	note(l, FN_DELETE, OP_FREE, (uintptr_t)was, 0, 0);

	std::shared_ptr<Thing> shared = std::allocate_shared<Thing>(Noted<Thing>(l), 7);
	std::shared_ptr<Thing> again = shared;
	std::vector<long, Noted<long>> noted{ Noted<long>(l) };
	for (long i = 0; i < 9; i++)
		noted.push_back(i);
}

static void *work(void *arg)
{
	struct ledger *l = (struct ledger *)arg;
	size_t number = (size_t)(l - ledgers);
	size_t n = 24 + 16 * number;

	l->tid = thread_id();
	pthread_barrier_wait(&together);
	for (unsigned long i = 0; i < rounds; i++) {
		use_blocks(l, n);
		use_objects(l, n);
		use_realloc(l, n);
		use_texts(l, "a text that is long enough");
		use_containers(l, n);
		hand_over(l, handed[number], n);
		pthread_barrier_wait(&together);
		take_over(l, handed[(number + 1) % THREADS]);
		use_blocks(l, n + 16);
		pthread_barrier_wait(&together);
	}
	leave(l, 100 + number);
	pthread_barrier_wait(&together);
	return park();
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2)
		die("usage: threads_cxx ROUNDS");
	rounds = number(argv[1]);
	pthread_barrier_init(&together, NULL, THREADS + 1);
	ledgers = new_ledgers(THREADS);
	for (size_t i = 0; i < THREADS; i++) {
		ledger_open(&ledgers[i], rounds * CALLS_PER_ROUND + 1);
		if (pthread_create(&thread, NULL, work, &ledgers[i]))
			die("no thread");
	}
	gate();
	for (unsigned long i = 0; i < 2 * rounds + 2; i++)
		pthread_barrier_wait(&together);
	report(ledgers, THREADS, "");
	_exit(0);
}
