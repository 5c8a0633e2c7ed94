// SPDX-License-Identifier: Apache-2.0
/*
 * operators ROUNDS [WHOSE]: all forms of operator new and delete, called directly and through
 * what the compiler and the library make of them, each logged under its name.
 *
 * After the gate, ROUNDS times: each form once; new expressions, including those of a class
 * with its own operators and of one whose constructor throws; containers; new that fails, with
 * and without a new_handler that helps; deleting null; and calls of malloc and free where an
 * operator was called before, from the same frame and the same instruction.
 *
 * WHOSE is 0 for libstdc++'s operators, otherwise the sum of the differences: 1, zero bytes
 * are requested as zero; 2, operators without exceptions do not catch one; 4, operators end
 * the program instead of throwing, so no new may fail. The log does not contain the C++
 * runtime's allocations for exceptions: "thrown" counts them, and each has a malloc and a
 * free.
 */
#include "oplog.h"
#include <map>
#include <memory>
#include <new>
#include <string>
#include <sys/resource.h>
#include <vector>

/* What differs from libstdc++'s operators: bits of WHOSE. */
enum { EXACT = 1, CATCHLESS = 2, THROWLESS = 4 };
static unsigned long whose;
static volatile size_t huge = SIZE_MAX / 2 + 1;
static constexpr std::align_val_t aligned{ 64 };

#define FORM(new_name, new_call, delete_name, delete_call)             \
	do {                                                           \
		void *p = log_new(new_name, ::operator new_call, 128); \
		log_delete(delete_name, (uintptr_t)p);                 \
		::operator delete_call;                                \
	} while (0)

static NOINLINE void forms()
{
	FORM(NEW, new (128), DELETE, delete (p));
	FORM(NEW, new (128), DELETE_SIZED, delete (p, 128));
	FORM(NEW_ARRAY, new[](128), DELETE_ARRAY, delete[](p));
	FORM(NEW_ARRAY, new[](128), DELETE_ARRAY_SIZED, delete[](p, 128));
	FORM(NEW_NOTHROW, new (128, std::nothrow), DELETE_NOTHROW, delete (p, std::nothrow));
	FORM(NEW_ARRAY_NOTHROW, new[](128, std::nothrow), DELETE_ARRAY_NOTHROW,
	     delete[](p, std::nothrow));
	FORM(NEW_ALIGNED, new (128, aligned), DELETE_ALIGNED, delete (p, aligned));
	FORM(NEW_ALIGNED, new (128, aligned), DELETE_SIZED_ALIGNED, delete (p, 128, aligned));
	FORM(NEW_ARRAY_ALIGNED, new[](128, aligned), DELETE_ARRAY_ALIGNED, delete[](p, aligned));
	FORM(NEW_ARRAY_ALIGNED, new[](128, aligned), DELETE_ARRAY_SIZED_ALIGNED,
	     delete[](p, 128, aligned));
	FORM(NEW_ALIGNED_NOTHROW, new (128, aligned, std::nothrow), DELETE_ALIGNED_NOTHROW,
	     delete (p, aligned, std::nothrow));
	FORM(NEW_ARRAY_ALIGNED_NOTHROW, new[](128, aligned, std::nothrow),
	     DELETE_ARRAY_ALIGNED_NOTHROW, delete[](p, aligned, std::nothrow));
	void *p = log_new(NEW, ::operator new(0), (whose & EXACT) ? 0 : 1);
	log_delete(DELETE, (uintptr_t)p);
	::operator delete(p);
}

struct Base {
	virtual ~Base() {}
	long word = 1;
};

struct Derived : Base {
	long more[5] = {};
};

struct alignas(128) Wide {
	char bytes[256];
};

/* Its operators lead to the global ones, or to malloc. */
struct Own {
	static void *operator new(size_t n) { return ::operator new(n); }
	static void operator delete(void *p) { ::operator delete(p); }
	static void *operator new[](size_t n) { return malloc(n); }
	static void operator delete[](void *p) { free(p); }
	char bytes[40];
};

static uintptr_t last;

struct Throws {
	Throws()
	{
		last = (uintptr_t)this;
		thrown++;
		throw 7;
	}
	char bytes[56];
};

/* forget keeps the compiler from omitting a pair of new and delete. */
template <typename T> static NOINLINE T *forget(T *p)
{
	asm volatile("" : "+r"(p) : : "memory");
	return p;
}

static NOINLINE void destroy(Base *b)
{
	delete b;
}

static NOINLINE void expressions()
{
	Base *b = forget<Base>(new Derived);
	log_new(NEW, b, sizeof(Derived));
	log_delete(DELETE_SIZED, (uintptr_t)b);
	destroy(b);

	char *bytes = forget(new char[300]);
	log_new(NEW_ARRAY, bytes, 300);
	log_delete(DELETE_ARRAY, (uintptr_t)bytes);
	delete[] bytes;

	Wide *wide = forget(new Wide);
	log_new(NEW_ALIGNED, wide, sizeof(Wide));
	log_delete(DELETE_SIZED_ALIGNED, (uintptr_t)wide);
	delete wide;

	Own *own = forget(new Own);
	log_new(NEW, own, sizeof(Own));
	log_delete(DELETE, (uintptr_t)own);
	delete own;
	own = forget(new Own[2]);
	log_new("malloc", own, 2 * sizeof(Own));
	log_delete("free", (uintptr_t)own);
	delete[] own;

	alignas(Derived) char place[sizeof(Derived)];
	Derived *placed = forget(new (place) Derived);
	placed->~Derived();

	try {
		forget(new Throws);
	} catch (int) {
		caught++;
		log_new(NEW, (void *)last, sizeof(Throws));
		log_delete(DELETE_SIZED, last);
	}
	try {
		forget(new (std::nothrow) Throws);
	} catch (int) {
		caught++;
		log_new(NEW_NOTHROW, (void *)last, sizeof(Throws));
		log_delete(DELETE_NOTHROW, last);
	}
}

/* Logged is std::allocator with a log. */
template <typename T> struct Logged : std::allocator<T> {
	template <typename U> struct rebind {
		using other = Logged<U>;
	};
	Logged() = default;
	template <typename U> Logged(const Logged<U> &) {}
	T *allocate(size_t n)
	{
		T *p = std::allocator<T>::allocate(n);
		log_new(NEW, p, n * sizeof(T));
		return p;
	}
	void deallocate(T *p, size_t n)
	{
		log_delete(DELETE_SIZED, (uintptr_t)p);
		std::allocator<T>::deallocate(p, n);
	}
};

static NOINLINE void containers()
{
	std::vector<long, Logged<long>> numbers;
	for (long i = 0; i < 8; i++)
		numbers.push_back(i);

	std::map<int, int, std::less<int>, Logged<std::pair<const int, int>>> squares;
	for (int i = 0; i < 5; i++)
		squares[i] = i * i;

	std::basic_string<char, std::char_traits<char>, Logged<char>> text(100, 'x');
}

static NOINLINE void plain(size_t n)
{
	void *p = log_new("malloc", malloc(n), n);
	log_delete("free", (uintptr_t)p);
	free(p);
}

#define FAILING(call)                             \
	do {                                      \
		try {                             \
			forget(call);             \
		} catch (std::bad_alloc &) {      \
			caught++;                 \
			thrown++;                 \
		}                                 \
		plain(24); /* from below */       \
		void *p = malloc(32);             \
		log_new("malloc", p, 32);         \
		log_delete("free", (uintptr_t)p); \
		free(p);                          \
	} while (0)

static NOINLINE void failing()
{
	FAILING(::operator new(huge));
	FAILING(::operator new[](huge));
	FAILING(::operator new(huge, aligned));
	FAILING(::operator new[](huge, aligned));
	/* These throw and catch by themselves. */
	if (!(whose & CATCHLESS))
		thrown += 2;
	if (::operator new(huge, std::nothrow) || ::operator new[](huge, aligned, std::nothrow))
		die("half of the address space was given away");
	plain(48);
}

static char *reserve;

/* let_in is the new_handler: it frees a block and takes one, and then the allocation succeeds. */
static void let_in()
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	log_delete(DELETE_ARRAY, (uintptr_t)reserve);
	delete[] reserve;
	plain(200);
	if (getrlimit(RLIMIT_AS, &limit))
		die("getrlimit: %s", strerror(errno));
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_AS, &limit))
		die("setrlimit: %s", strerror(errno));
}

static NOINLINE void handled()
{
	const size_t big = 200 << 20;
	struct rlimit limit;

	plain(200); /* so that there is room for the handler's block */
	reserve = (char *)log_new(NEW_ARRAY, ::operator new[](400), 400);
	std::set_new_handler(let_in);
	if (getrlimit(RLIMIT_AS, &limit))
		die("getrlimit: %s", strerror(errno));
	limit.rlim_cur = 100 << 20;
	if (setrlimit(RLIMIT_AS, &limit))
		die("setrlimit: %s", strerror(errno));
	void *p = ::operator new[](big);
	std::set_new_handler(nullptr);
	log_new(NEW_ARRAY, p, big);
	log_delete(DELETE_ARRAY, (uintptr_t)p);
	::operator delete[](p);
}

/* Operators and the allocator in turn, each called by the same instruction. */
static NOINLINE void in_turn()
{
	void *(*volatile make[])(size_t) = { ::operator new, malloc, ::operator new[], malloc };
	const char *made[] = { NEW, "malloc", NEW_ARRAY, "malloc" };
	void (*volatile end[])(void *) = { ::operator delete, free, ::operator delete[], free };
	const char *ended[] = { DELETE, "free", DELETE_ARRAY, "free" };
	void *all[4];

	for (int fails = 0; fails < (whose & THROWLESS ? 1 : 2); fails++)
		for (int i = 0; i < 4; i++) {
			bool throws = fails && i % 2 == 0;

			try {
				all[i] = make[i](throws ? huge : 72);
			} catch (std::bad_alloc &) {
				caught++;
				thrown++;
				all[i] = nullptr;
			}
			if (!throws)
				log_new(made[i], all[i], 72);
			if (fails && all[i])
				log_delete("free", (uintptr_t)all[i]);
			if (fails)
				free(all[i]);
			if (!fails && i == 3)
				for (int k = 0; k < 4; k++) {
					log_delete(ended[k], (uintptr_t)all[k]);
					end[k](all[k]);
				}
		}
	void *p = log_new("malloc", malloc(8), 8);
	void *these[] = { nullptr, p, nullptr, nullptr };
	for (int k = 0; k < 4; k++) {
		if (these[k])
			log_delete(ended[k], (uintptr_t)these[k]);
		end[k](these[k]);
	}
}

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: operators ROUNDS [WHOSE]");
	unsigned long rounds = number(argv[1]);
	if (argc > 2)
		whose = number(argv[2]);
	/* In static programs the unwinder sorts its tables at the first exception. */
	try {
		throw 7;
	} catch (int) {
	}
	gate();
	for (unsigned long i = 0; i < rounds; i++) {
		forms();
		expressions();
		containers();
		if (!(whose & THROWLESS)) {
			failing();
			handled();
		}
		in_turn();
	}
	log_report();
	_exit(0);
}
