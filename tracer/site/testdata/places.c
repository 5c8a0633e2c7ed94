/*
 * Functions that handle their arguments in ways which matter for finding them after the entry:
 * they load, overwrite, exchange and multiply them, and take their address. main calls each with
 * values that occur nowhere else.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

struct pair {
	unsigned first, second;
};

volatile unsigned sink, zero;
unsigned char bytes[64];

NOINLINE unsigned sum(unsigned a, unsigned b, unsigned c)
{
	return a + b + c;
}

NOINLINE unsigned changed(unsigned a, unsigned b, unsigned c)
{
	a += c;
	b ^= a;
	sink = b;
	return sum(b, a, c);
}

NOINLINE unsigned exchanged(unsigned a, unsigned b, unsigned c)
{
	return sum(b, a, c);
}

NOINLINE unsigned product(unsigned a, unsigned b, unsigned *over)
{
	unsigned n;

	*over = __builtin_mul_overflow(a, b, &n);
	return *over ? 0 : n;
}

NOINLINE unsigned product_first(unsigned a, unsigned b)
{
	unsigned n;

	if (__builtin_mul_overflow(a, b, &n))
		return sink;
	return sum(n, a, b);
}

NOINLINE unsigned signed_product(int a, int b)
{
	int n = a * b;

	sink = n;
	return n == 0 ? a : n / 3;
}

NOINLINE unsigned null_check(unsigned *p, unsigned b)
{
	if (!p)
		return b;
	*p += b;
	return sum(*p, b, 0);
}

NOINLINE unsigned address_taken(unsigned a, unsigned b)
{
	unsigned *volatile p = &b;

	*p = 5;
	return a + b;
}

NOINLINE unsigned through_pointer(unsigned *p, unsigned b, unsigned c)
{
	p[1] = 7;
	p[0] = b;
	return c + p[1];
}

NOINLINE unsigned narrow(unsigned char a, unsigned short b, unsigned c)
{
	a += 3;
	b *= 5;
	bytes[a & 63] = b;
	return a + b + c;
}

NOINLINE unsigned wide(unsigned long long a, unsigned c)
{
	a *= c;
	return a >> 7;
}

NOINLINE unsigned by_value(struct pair a, unsigned c)
{
	a.second = c;
	a.first++;
	return sum(a.first, a.second, c);
}

NOINLINE struct pair returned(unsigned a, unsigned b)
{
	struct pair p = { b, a };

	return p;
}

NOINLINE unsigned locals(unsigned a, unsigned b)
{
	unsigned table[8] __attribute__((aligned(32)));

	memset(table, 0, sizeof(table));
	table[a & 7] = b;
	return table[b & 7] + sum(a, b, (unsigned)(size_t)table);
}

NOINLINE double floating(double a, unsigned b)
{
	return a * b;
}

NOINLINE unsigned many(unsigned n, ...)
{
	unsigned all = 0;
	va_list list;

	va_start(list, n);
	while (n--)
		all += va_arg(list, unsigned);
	va_end(list);
	return all;
}

NOINLINE unsigned eight(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f,
			unsigned g, unsigned h)
{
	h = a;
	e = d;
	return a + b + c + d + e + f + g + sum(h, e, f);
}

NOINLINE unsigned conditional(unsigned a, unsigned b)
{
	return a > 5 ? b : a;
}

static void allocate(void)
{
	void *p = malloc(1111), *q = calloc(13, 17), *r = NULL;

	p = realloc(p, 2222);
	q = reallocarray(q, 19, 23);
	free(NULL);
	free(p);
	free(q);
	if (posix_memalign(&r, 64, 333) == 0)
		free(r);
	free(aligned_alloc(32, 320));
	free(valloc(444));
	free(strdup("places"));
}

int main(void)
{
	unsigned word = 0x1234567;
	struct pair pair = { 0x2345678, 0x3456789 };
	unsigned two[2] = { 1, 2 };

	__asm__ volatile("int3");
	sink = sum(0x1010101, 0x2020202, 0x3030303);
	sink = changed(0x1111111, 0x2222222, 0x3333333);
	sink = exchanged(0x1212121, 0x2323232, 0x3434343);
	sink = product(0x1001, 0x2003, &word) + product(0x10000001, 0x2003, &word);
	sink = product_first(0x1005, 0x2007) + product_first(0x50000001, 0x2007);
	sink = signed_product(-0x1009, 0x200b) + signed_product(0x100d, 0x200f);
	sink = null_check(&word, 0x4545454) + null_check(NULL, 0x5656565);
	sink = address_taken(0x6767676, 0x7878787);
	sink = through_pointer(two, 0x1357911, 0x2468101);
	sink = narrow(0x81, 0x8283, 0x1928374);
	sink = wide(0x1122334455667788ull, 0x5a5a5a5);
	sink = by_value(pair, 0x4567891);
	sink = returned(0x5678912, 0x6789123).first;
	sink = locals(0x7891234, 0x1234321);
	sink = floating(1.25, 0x1001001);
	sink = many(3, 0x1000001, 0x2000002, 0x3000003);
	sink = eight(0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88);
	sink = conditional(3, 0x7654321) + conditional(0x7, 0x6543217);
	allocate();
	__asm__ volatile("int3");
	return 0;
}
