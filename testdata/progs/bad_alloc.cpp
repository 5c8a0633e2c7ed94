// SPDX-License-Identifier: Apache-2.0
/*
 * bad_alloc [uncaught]: news that fail, in every form, in two threads one after the
 * other, from nested calls and from a destructor. It prints what was caught.
 *
 * The exit status is 7. With "uncaught" the last exception is not caught, and the
 * program is ended by SIGABRT.
 */
#include "prog.h"
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <vector>

static volatile size_t huge = SIZE_MAX / 2 + 1;
static const char *thread_name;
static void *volatile kept;

/* attempt prints the result. */
template <typename F> static NOINLINE void attempt(const char *what, F make)
{
	try {
		kept = make();
		out("%s: %s: %s\n", thread_name, what, kept ? "a block" : "nothing");
	} catch (const std::exception &e) {
		out("%s: %s: %s\n", thread_name, what, e.what());
	}
}

static NOINLINE void *below(int depth)
{
	std::string text(100 + (size_t)depth, 'x');

	if (depth == 0)
		return ::operator new(huge);
	void *p = below(depth - 1);
	asm volatile("" : "+r"(p));
	return p;
}

struct Late {
	~Late()
	{
		attempt("in a destructor", [] { return ::operator new(huge); });
	}
};

static void run(const char *name)
{
	const std::align_val_t aligned{ 64 };

	thread_name = name;
	attempt("new", [] { return ::operator new(huge); });
	attempt("new[]", [] { return ::operator new[](huge); });
	attempt("aligned new", [&] { return ::operator new(huge, aligned); });
	attempt("aligned new[]", [&] { return ::operator new[](huge, aligned); });
	attempt("nothrow new", [] { return ::operator new(huge, std::nothrow); });
	attempt("nothrow new[]", [] { return ::operator new[](huge, std::nothrow); });
	attempt("a length", [] { return new int[huge]; });
	attempt("a vector", [] { return new std::vector<char>(huge / 2); });
	attempt("from below", [] { return below(20); });
	attempt("while unwinding", []() -> void * {
		Late late;
		return ::operator new(huge);
	});
	void *p = ::operator new(10);
	out("%s: and then %s\n", name, p ? "a block" : "nothing");
	::operator delete(p);
}

int main(int argc, char **argv)
{
	(void)argv;
	gate();
	run("main");
	std::thread(run, "another").join();
	out_flush();
	if (argc > 1)
		kept = ::operator new(huge);
	_exit(7);
}
