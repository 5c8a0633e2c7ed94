// SPDX-License-Identifier: Apache-2.0
/*
 * cxx ROUNDS: new and delete, exceptions, containers; logged.
 *
 * After the gate, ROUNDS times: new and delete of 4 bytes, of 0, of 100 as an
 * array, of 256 aligned to 64, of 50 without exceptions; a new that fails and
 * throws bad_alloc, which is caught; an int that is thrown and caught; a vector
 * that grows from 1 to 8 numbers; a map of 5; a string of 100 characters. At
 * the end leak_new makes new char[4000], the one block that is left.
 *
 * The log has operator new and operator delete, the containers' through an
 * allocator that logs them. libstdc++'s operator new makes a malloc of the
 * same size (of 1 for 0), the aligned one an aligned_alloc. What the C++
 * runtime allocates for an exception, and frees, is not in the log. "caught"
 * counts the exceptions.
 */
#include "prog.h"
#include <cstddef>
#include <map>
#include <new>
#include <string>
#include <vector>

static struct ledger l;
static volatile size_t huge = SIZE_MAX / 2 + 1;
static unsigned long caught;
static void *volatile kept;

static void *do_new(size_t n)
{
	return note_new(&l, FN_NEW, ::operator new(n), n);
}

static void do_delete(void *p)
{
	uintptr_t old = (uintptr_t)p;

	::operator delete(p);
	note(&l, FN_DELETE, OP_FREE, old, 0, 0);
}

/* Noted is an allocator that logs its calls. */
template <typename T> struct Noted {
	using value_type = T;

	Noted() = default;
	template <typename U> Noted(const Noted<U> &) {}
	T *allocate(size_t n) { return static_cast<T *>(do_new(n * sizeof(T))); }
	void deallocate(T *p, size_t) { do_delete(p); }
	template <typename U> bool operator==(const Noted<U> &) const { return true; }
	template <typename U> bool operator!=(const Noted<U> &) const { return false; }
};

static NOINLINE void operators()
{
	do_delete(do_new(4));
	do_delete(do_new(0));

	void *p = note_new(&l, FN_NEW, ::operator new[](100), 100);
	uintptr_t old = (uintptr_t)p;
	::operator delete[](p);
	note(&l, FN_DELETE, OP_FREE, old, 0, 0);

	p = note_new(&l, FN_NEW, ::operator new(256, std::align_val_t(64)), 256);
	old = (uintptr_t)p;
	::operator delete(p, std::align_val_t(64));
	note(&l, FN_DELETE, OP_FREE, old, 0, 0);

	p = note_new(&l, FN_NEW, ::operator new(50, std::nothrow), 50);
	do_delete(p);
}

static NOINLINE void exceptions()
{
	try {
		do_delete(do_new(huge));
	} catch (const std::bad_alloc &) {
		note(&l, FN_NEW, OP_NONE, 0, 0, huge);
		caught++;
	}
	try {
		throw 7;
	} catch (int) {
		caught++;
	}
}

static NOINLINE void containers()
{
	std::vector<long, Noted<long>> numbers;
	for (long i = 0; i < 8; i++)
		numbers.push_back(i);

	std::map<int, int, std::less<int>, Noted<std::pair<const int, int>>> squares;
	for (int i = 0; i < 5; i++)
		squares[i] = i * i;

	std::basic_string<char, std::char_traits<char>, Noted<char>> text(100, 'x');
}

static NOINLINE void leak_new()
{
	kept = note_new(&l, FN_NEW, new char[4000], 4000);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: cxx ROUNDS");
	unsigned long rounds = number(argv[1]);
	l.tid = thread_id();
	ledger_open(&l, rounds * 64 + 1);
	gate();
	for (unsigned long i = 0; i < rounds; i++) {
		operators();
		exceptions();
		containers();
	}
	leak_new();
	char more[64];
	snprintf(more, sizeof(more), "\"caught\":%lu", caught);
	report(&l, 1, more);
	_exit(0);
}
