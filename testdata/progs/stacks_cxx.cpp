// SPDX-License-Identifier: Apache-2.0
/*
 * stacks_cxx LOG ROUNDS THREADS: allocations below the frames of C++.
 *
 * After the gate each of THREADS threads (the main one is the first) runs ROUNDS times through
 * the functions below: containers that grow, comparators, virtual functions, lambdas, exceptions
 * whose unwinding frees, signal handlers. The log of stacklog.h has every call of the allocator,
 * including those of operator new and of the C++ runtime.
 */
#include "stacklog.h"
#include <algorithm>
#include <csignal>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#define USE(memory) __asm__ volatile("" : : "r"(memory) : "memory")

/* Containers: the frames of templates, of the program and of libstdc++. */
static NOINLINE void containers(int seed)
{
	std::vector<std::string> texts;
	std::map<std::string, std::vector<int>> table;
	std::unordered_map<int, std::string> hashed;
	std::list<int> chain;

	for (int i = 0; i < 10; i++) {
		texts.push_back(std::string(20 + static_cast<size_t>(i), 'x') +
				std::to_string(seed));
		table[texts.back()].push_back(i);
		hashed.emplace(i, texts.back());
		chain.push_front(i);
	}
	table.erase(texts.front());
	std::ostringstream out;
	out << "a text of some length, so that it grows: " << seed << ' ' << 1.5
	    << std::string(600, 'y');
	USE(out.str().c_str());
}

/* Comparators and callbacks that allocate, called by libstdc++ and by libc. */

static int by_length(const void *a, const void *b)
{
	std::string x(static_cast<size_t>(*static_cast<const int *>(a)) + 30, 'x');
	std::string y(static_cast<size_t>(*static_cast<const int *>(b)) + 30, 'y');

	return static_cast<int>(x.size()) - static_cast<int>(y.size());
}

static NOINLINE void comparators(int seed)
{
	std::vector<int> numbers(24);

	std::iota(numbers.begin(), numbers.end(), seed % 7);
	std::reverse(numbers.begin() + 3, numbers.end());
	std::sort(numbers.begin(), numbers.end(), [&](int a, int b) {
		auto copy = std::make_unique<int[]>(static_cast<size_t>(a + b + 1));
		USE(copy.get());
		return a % 5 < b % 5;
	});
	std::stable_sort(numbers.begin(), numbers.end());
	std::qsort(numbers.data(), 8, sizeof(int), by_length);
}

static NOINLINE void functions(int seed)
{
	std::string held(40, 'h');
	std::function<int(int)> grow = [&, held](int n) {
		std::vector<int> room(static_cast<size_t>(n + 1));
		USE(room.data());
		return n > 0 ? grow(n - 1) + static_cast<int>(held.size()) : seed;
	};
	auto bound = std::bind(grow, 7);

	USE(reinterpret_cast<void *>(static_cast<intptr_t>(bound())));
}

/* Virtual calls, through a thunk too. */
struct Shape {
	virtual ~Shape() = default;
	virtual std::string draw(int depth) const = 0;
};

struct Named {
	std::string name = "a name that is too long to be stored inside";
	virtual ~Named() = default;
	virtual std::unique_ptr<Shape> copy() const = 0;
};

struct Square : Shape, Named {
	std::string draw(int depth) const override
	{
		return depth > 0 ? copy()->draw(depth - 1) + "." : name;
	}
	std::unique_ptr<Shape> copy() const override { return std::make_unique<Square>(*this); }
};

static NOINLINE void virtual_calls(int seed)
{
	Square square;
	const Named &named = square;
	std::string text = named.copy()->draw(seed % 12);

	USE(text.data());
}

/* Exceptions: memory is taken and given back while the stack is unwound. */

static thread_local int caught;

struct Witness {
	std::string text = std::string(50, 'w');
	~Witness()
	{
		std::string copy = text + " gone";
		USE(copy.data());
	}
};

struct Failure : std::runtime_error {
	std::vector<int> details = std::vector<int>(30);
	Failure() : std::runtime_error("a message that is kept on the heap") {}
};

static NOINLINE void fall(int depth)
{
	Witness witness;
	char room[100];

	USE(room);
	if (depth == 0)
		throw Failure();
	fall(depth - 1);
	USE(room);
}

static NOINLINE void fall_and_throw_again(int depth)
{
	try {
		Witness witness;
		fall(depth);
	} catch (Failure &failure) {
		failure.details.resize(300);
		throw;
	}
}

static NOINLINE void exceptions(int seed)
{
	try {
		fall_and_throw_again(seed % 9);
	} catch (const std::exception &e) {
		std::string text = e.what();
		USE(text.data());
		caught++;
	}
	try {
		std::string(3, 'x').at(5);
	} catch (const std::out_of_range &) {
		caught++;
	}
	try {
		volatile std::size_t huge = SIZE_MAX / 2 + 1;

		USE(::operator new(huge));
	} catch (const std::bad_alloc &) {
		Witness witness;
		caught++;
	}
	std::exception_ptr kept;
	try {
		fall(1);
	} catch (...) {
		kept = std::current_exception();
	}
	try {
		std::rethrow_exception(kept);
	} catch (const Failure &) {
		caught++;
	}
}

/* A signal handler that throws and catches. */
static void handler(int)
{
	Witness witness;

	try {
		fall(2);
	} catch (const Failure &) {
		caught++;
	}
}

static NOINLINE void signals()
{
	Witness witness;

	raise(SIGUSR1);
}

static NOINLINE void operators()
{
	struct alignas(64) Aligned {
		char room[64];
	};

	std::vector<Aligned> all(3);
	USE(all.data());
	delete[] new char[100];
	delete new (std::nothrow) Aligned;
}

static void run(int seed, unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++) {
		int n = seed + static_cast<int>(i);
		containers(n);
		comparators(n);
		functions(n);
		virtual_calls(n);
		exceptions(n);
		signals();
		operators();
	}
	if (caught != static_cast<int>(rounds * 5))
		die("%d exceptions caught in %lu rounds", caught, rounds);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		die("usage: stacks_cxx LOG ROUNDS THREADS");
	unsigned long rounds = number(argv[2]), threads = number(argv[3]);
	std::signal(SIGUSR1, handler);
	stacklog_open(argv[1]);
	gate();
	std::vector<std::thread> all;
	for (unsigned long i = 1; i < threads; i++)
		all.emplace_back(run, static_cast<int>(i * rounds), rounds);
	auto later = std::async(std::launch::deferred, run, 0, rounds);
	later.get();
	for (auto &thread : all)
		thread.join();
	_exit(0);
}
