// Says of each of its allocations where the program made it, and the return
// addresses of the call. Then come its mappings.
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

static struct {
	const char *function;
	int line;
} armed;

extern "C" void *__libc_malloc(size_t);

// The first call after arm is reported.
extern "C" __attribute__((noinline)) void *malloc(size_t n) {
	void *p = __libc_malloc(n);
	if (armed.line) {
		void *frames[64];
		int line = armed.line;
		armed.line = 0;
		int count = backtrace(frames, 64);
		printf("call %s %d", armed.function, line);
		for (int i = 1; i < count; i++) printf(" %p", frames[i]);
		printf("\n");
	}
	return p;
}

#define ARM(f) (armed.function = f, armed.line = __LINE__)

static void *volatile kept;

static __attribute__((noinline)) void in_static() {
	ARM("_ZL9in_staticv"), kept = malloc(10);
	printf("# %p\n", kept);
}

extern "C" __attribute__((noinline)) void in_c() {
	ARM("in_c"), kept = strdup("a text");
	printf("# %p\n", kept);
}

struct item {
	std::string name;
	explicit item(const char *n) : name(n) {}
	__attribute__((noinline)) void grow(std::vector<int> &v) {
		ARM("_ZN4item4growERSt6vectorIiSaIiEE"), v.push_back(1);
		printf("# %p\n", (void *)v.data());
	}
};

static inline __attribute__((always_inline)) void *inlined() {
	return ARM("_ZL7inlinedv"), malloc(20);
}

template <typename T>
__attribute__((noinline)) std::unique_ptr<T> make() {
	return ARM("_Z4makeIiESt10unique_ptrIT_St14default_deleteIS1_EEv"), std::make_unique<T>();
}

int main() {
	void *prime[4];
	backtrace(prime, 4);  // loads a library
	printf("# start\n");
	in_static();
	in_c();
	ARM("main"), kept = new int[100];
	ARM("main"), kept = ::operator new(5);
	std::vector<int> v;
	item i("x");
	i.grow(v);
	kept = inlined();
	auto p = make<int>();
	std::string text("short");
	ARM("main"), text += " and now much longer than any small buffer could be";
	std::map<std::string, int> m;
	ARM("main"), m["a key that is too long for a small buffer"] = 1;
	std::vector<std::string> list;
	ARM("main"), list.reserve(10);
	ARM("main"), kept = new item("a name that is too long for a small buffer");
	char *line = nullptr;
	ARM("main"), kept = realpath("/", line);
	std::function<void()> f = [&] { ARM("_ZZ4mainENKUlvE_clEv"), kept = malloc(30); };
	f();
	printf("-\n");
	FILE *maps = fopen("/proc/self/maps", "r");
	for (int c; (c = getc(maps)) != EOF;) putchar(c);
	return v.size() + m.size() + list.size() == 12345;
}
