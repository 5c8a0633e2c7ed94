// Writes a trace of itself in jsonl to its standard output, and what each of its
// functions allocated to its standard error: name, blocks and bytes that it did
// not free, blocks and bytes that it allocated, separated by tabs.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

struct Sum { unsigned long live, live_bytes, all, all_bytes; };

static unsigned long seq;
static const char *function = "?";          // that allocates now
static std::map<std::string, Sum> *truth;   // by function
static std::map<void *, std::pair<std::string, size_t>> *blocks;
static bool off = true;                     // what the tracing itself allocates

__attribute__((noinline)) static void record(const char *op, const char *name, void *id, void *old, size_t size)
{
	void *frames[64];
	off = true;
	int n = backtrace(frames, 64);
	printf("{\"kind\":\"call\",\"time\":%lu,\"pid\":%d,\"tid\":%d,\"seq\":%lu,\"op\":\"%s\",\"function\":\"%s\",\"id\":\"%p\"", ++seq * 1000000000, getpid(), gettid(), seq, op, name, id);
	if (old)
		printf(",\"old_id\":\"%p\"", old);
	if (size)
		printf(",\"size\":%zu,\"stack_end\":\"complete\",\"stack\":[", size);
	for (int i = 2; size && i < n; i++) // behind this function and who called it
		printf("%s\"%p\"", i == 2 ? "" : ",", frames[i]);
	printf("%s}\n", size ? "]" : "");
	void *gone = old ? old : size ? nullptr : id;
	if (gone) {
		auto b = blocks->find(gone);
		Sum &s = (*truth)[b->second.first];
		s.live--, s.live_bytes -= b->second.second;
		blocks->erase(b);
	}
	if (size) {
		Sum &s = (*truth)[function];
		s.live++, s.all++, s.live_bytes += size, s.all_bytes += size;
		(*blocks)[id] = {function, size};
	}
	off = false;
}

#define BARRIER asm volatile("" ::: "memory") // no tail call before this

__attribute__((noinline)) static void *traced_malloc(size_t size, size_t said = 0)
{
	void *p = malloc(size);
	record("alloc", "malloc", p, nullptr, said ? said : size);
	BARRIER;
	return p;
}

__attribute__((noinline)) static void *traced_realloc(void *old, size_t size)
{
	void *keep = malloc(1); // so that the address changes
	void *p = realloc(old, size);
	record("move", "realloc", p, old, size);
	free(keep);
	return p;
}

__attribute__((noinline)) static void traced_free(void *p)
{
	record("free", "free", p, nullptr, 0);
	free(p);
}

__attribute__((noinline)) void *operator new(size_t size)
{
	if (off)
		return malloc(size);
	void *p = traced_malloc(size);
	BARRIER;
	return p;
}

__attribute__((noinline)) void operator delete(void *p) noexcept
{
	if (off)
		free(p);
	else
		traced_free(p);
	BARRIER;
}

void operator delete(void *p, size_t) noexcept { operator delete(p); }

static void *sink;

#define IN(name) struct In { const char *was = function; In() { function = name; } ~In() { function = was; } } in

extern "C" __attribute__((noinline)) void leak_c(int n)
{
	IN("leak_c");
	for (int i = 0; i < n; i++)
		sink = traced_malloc(100);
	BARRIER;
}

static inline __attribute__((always_inline)) void inlined_helper(size_t size)
{
	IN("inlined_helper(unsigned long)");
	sink = traced_malloc(size);
	BARRIER;
}

namespace shapes {
template <typename T> struct Box {
	__attribute__((noinline)) T *fill(const T &value)
	{
		IN("shapes::Box<std::pair<int, char> >::fill(std::pair<int, char> const&)");
		T *t = new T(value);
		BARRIER;
		return t;
	}
};
}

__attribute__((noinline)) void outer(unsigned n)
{
	IN("outer(unsigned int)");
	sink = traced_malloc(10);
	inlined_helper(n);
	inlined_helper(n + 1);
	BARRIER;
}

__attribute__((noinline)) void grow(std::vector<long> &v, int n)
{
	IN("grow(std::vector<long, std::allocator<long> >&, int)");
	for (int i = 0; i < n; i++)
		v.push_back(i);
	BARRIER;
}

__attribute__((noinline)) void moves()
{
	IN("moves()");
	void *p = traced_malloc(8);
	for (size_t n = 16; n <= 4096; n *= 2)
		p = traced_realloc(p, n);
	sink = p;
	BARRIER;
}

__attribute__((noinline)) void huge()
{
	IN("huge()");
	sink = traced_malloc(16, 5ul << 30);
	sink = traced_malloc(16, 6ul << 30);
	BARRIER;
}

__attribute__((noinline)) static int compare(const void *, const void *)
{
	IN("compare(void const*, void const*)");
	sink = traced_malloc(3);
	BARRIER;
	return 0;
}

__attribute__((noinline)) void temporary(int n)
{
	IN("temporary(int)");
	for (int i = 0; i < n; i++)
		traced_free(traced_malloc(48));
	BARRIER;
}

__attribute__((noinline)) void recurse(int n)
{
	IN("recurse(int)");
	sink = traced_malloc(7);
	if (n)
		recurse(n - 1);
	BARRIER;
}

static void mappings()
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096], path[4096], mode[8];
	std::map<std::string, unsigned long> bases;
	unsigned long start, end, offset;
	while (fgets(line, sizeof line, maps)) {
		path[0] = 0;
		sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095s", &start, &end, mode, &offset, path);
		if (path[0] != '/')
			continue;
		if (offset == 0 && !bases.count(path))
			bases[path] = start;
		if (mode[2] == 'x')
			printf("{\"kind\":\"mapping\",\"pid\":%d,\"start\":\"0x%lx\",\"end\":\"0x%lx\",\"offset\":\"0x%lx\",\"base\":\"0x%lx\",\"path\":\"%s\"}\n", getpid(), start, end, offset, bases[path], path);
	}
	fclose(maps);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 5;
	truth = new std::map<std::string, Sum>;
	blocks = new std::map<void *, std::pair<std::string, size_t>>;
	std::vector<long> v;
	printf("{\"format\":\"rtrace-jsonl\",\"version\":1}\n");
	printf("{\"kind\":\"header\",\"pid\":%d,\"clock\":\"monotonic\"}\n", getpid());
	printf("{\"kind\":\"process\",\"pid\":%d,\"name\":\"%s\"}\n", getpid(), argv[0]);
	mappings();
	off = false;

	leak_c(n);
	outer(200);
	grow(v, 10 * n);
	moves();
	huge();
	temporary(n);
	recurse(n);
	shapes::Box<std::pair<int, char>> box;
	sink = box.fill({1, 'x'});
	int few[2] = {2, 1};
	qsort(few, 2, sizeof few[0], compare);
	auto lambda = [&](int size) __attribute__((noinline)) {
		IN("main::{lambda(int)#1}::operator()(int) const");
		sink = traced_malloc(size + n);
		BARRIER;
	};
	lambda(1000);
	off = true;
	printf("{\"kind\":\"context\",\"pid\":%d,\"id\":1,\"name\":\"worker begins\"}\n", getpid());
	std::thread worker([&] {
		printf("{\"kind\":\"thread\",\"pid\":%d,\"tid\":%d,\"name\":\"worker\"}\n", getpid(), gettid());
		off = false;
		leak_c(n + 1); // from a thread of its own
		off = true;
	});
	worker.join();
	printf("{\"kind\":\"end\",\"pid\":%d}\n", getpid());
	for (auto &t : *truth)
		fprintf(stderr, "%s\t%lu\t%lu\t%lu\t%lu\n", t.first.c_str(), t.second.live, t.second.live_bytes, t.second.all, t.second.all_bytes);
	return 0;
}
