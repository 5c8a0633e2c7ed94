/* Prints the addresses of its functions and those of its libraries, then its mappings. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline)) int local(int x) { return x + rand(); }
__attribute__((noinline)) int visible(int x) { return local(x) * 2; }

#ifdef LIBRARY
__attribute__((noinline)) int in_library(int x) { return local(x) * 3; }
#else
int main(int argc, char **argv)
{
	FILE *maps;
	int c;

	printf("local %p\nvisible %p\nmain %p\n", (void *)local, (void *)visible, (void *)main);
#ifdef DYNAMIC
	void *lib = dlopen(argv[1], RTLD_NOW);
	printf("in_library %p\n", dlsym(lib, "in_library"));
	printf("malloc %p\nqsort %p\n", dlsym(RTLD_DEFAULT, "malloc"), dlsym(RTLD_DEFAULT, "qsort"));
#endif
	printf("-\n");
	maps = fopen("/proc/self/maps", "r");
	while ((c = getc(maps)) != EOF) {
		putchar(c);
	}
	return visible(1) == 12345;
}
#endif
