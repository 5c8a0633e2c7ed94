// Functions of kinds that only C++ has.
#include "sub/shapes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

int sink;

namespace outer {
namespace {
__attribute__((noinline)) int hidden(int x) { return rand() + four(x); }
}  // namespace

template <typename T>
struct box {
	T value;
	explicit box(T v) : value(v) { sink += hidden(1); }
	~box() { sink += rand(); }
	__attribute__((noinline)) T get() const { return value; }
	static inline T make(T v) { return box(v).get(); }
};

struct base {
	virtual ~base() { sink += rand(); }
	virtual int work(int) = 0;
};
struct derived : base {
	std::vector<int> list;
	int work(int n) override {
		for (int i = 0; i < n; i++) list.push_back(hidden(i));
		return int(list.size());
	}
};
}  // namespace outer

template <typename F>
static int apply(F f, int n) {
	return f(n) + f(n + 1);
}

int main(int argc, char **argv) {
	std::unique_ptr<outer::base> b(new outer::derived);
	int r = b->work(argc) + outer::box<int>::make(argc) + int(outer::box<long>::make(argc));
	struct local {
		int q;
		__attribute__((noinline)) int method(int z) { return rand() + z + q; }
	} l{argc};
	auto lambda = [&](int k) __attribute__((noinline)) { return l.method(k) + rand(); };
	std::vector<std::string> names(argv, argv + argc);
	std::sort(names.begin(), names.end(), [](const std::string &x, const std::string &y) { return x > y; });
	std::map<std::string, int> count;
	for (auto &n : names) count[n + "x"]++;
	r += apply(lambda, argc) + apply([](int k) { return twice(k); }, argc);
	try {
		if (argc > 5) throw std::string("many");
	} catch (const std::string &s) {
		r += int(s.size());
	}
	return r + int(count.size()) == 12345;
}
