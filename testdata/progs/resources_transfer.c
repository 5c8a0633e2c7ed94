// SPDX-License-Identifier: Apache-2.0
/*
 * resources_transfer: copies and fills memory with each function that module memtransfer knows, and
 * prints what that records. See resources.h. Some C libraries have one function for memcpy and
 * memmove.
 */
#include "resources.h"
#include <strings.h>
#include <sys/mman.h>
#include <wchar.h>

extern void *__memcpy_chk(void *to, const void *from, size_t n, size_t room);
extern void *__memset_chk(void *to, int c, size_t n, size_t room);
extern char *__strcpy_chk(char *to, const char *from, size_t room);
extern wchar_t *__wcscpy_chk(wchar_t *to, const wchar_t *from, size_t room);

/* The compiler must not replace the call. */
#define CALL(f) (*(__typeof__(&(f)) volatile *)&(__typeof__(&(f))){ f })

enum { LONG = 20000, WIDE = 1500 };

static char to[2 * LONG], from[LONG];
static wchar_t wide_to[2 * WIDE], wide_from[WIDE];

enum { PAGE = 1 << 16 };

/* Constants on pages of their own. */
static const char untouched[3 * PAGE] = { [PAGE] = 'n', 'o', 'b', 'o', 'd', 'y', ' ', 'h', 'a', 's',
					  ' ',		'r', 'e', 'a', 'd', ' ', 'i', 't', '.' };

static void transferred(const char *function, const void *at, size_t size)
{
	allocated(function, "memtransfer", (uintptr_t)at, size, "");
}

static void bytes(size_t n)
{
	CALL(memcpy)(to, from, n);
	transferred("memcpy|memmove", from, n);
	CALL(memmove)(to, from + 1, n);
	transferred("memcpy|memmove", from + 1, n);
	CALL(mempcpy)(to, from + 2, n);
	transferred("mempcpy", from + 2, n);
	CALL(bcopy)(from + 3, to, n);
	transferred("bcopy", from + 3, n);
	CALL(memset)(to, 'x', n);
	transferred("memset", to, n);
	CALL(bzero)(to + 1, n);
	transferred("bzero", to + 1, n);
	CALL(explicit_bzero)(to + 2, n);
	transferred("explicit_bzero", to + 2, n);
	CALL(__memcpy_chk)(to, from + 4, n, sizeof(to));
	transferred("memcpy|memmove", from + 4, n);
	CALL(__memset_chk)(to + 3, 'y', n, sizeof(to) - 3);
	transferred("memset", to + 3, n);
	CALL(strncpy)(to, from + 5, n);
	transferred("strncpy", from + 5, n);
	CALL(stpncpy)(to, from + 6, n);
	transferred("stpncpy", from + 6, n);
	to[0] = 0;
	CALL(strncat)(to, from + 7, n);
	transferred("strncat", from + 7, n);
	free(CALL(strndup)(from + 8, n));
	transferred("strndup", from + 8, n);
}

static void texts(const char *text, size_t length)
{
	CALL(strcpy)(to, text);
	transferred("strcpy", text, length);
	CALL(stpcpy)(to, text);
	transferred("stpcpy", text, length);
	to[0] = 0;
	CALL(strcat)(to, text);
	transferred("strcat", text, length);
	free(CALL(strdup)(text));
	transferred("strdup", text, length);
	CALL(__strcpy_chk)(to, text, sizeof(to));
	transferred("strcpy", text, length);
}

static void wide_characters(size_t n)
{
	const size_t size = n * sizeof(wchar_t);

	CALL(wmemcpy)(wide_to, wide_from, n);
	transferred("wmemcpy", wide_from, size);
	CALL(wmemmove)(wide_to, wide_from + 1, n);
	transferred("wmemmove", wide_from + 1, size);
	CALL(wmempcpy)(wide_to, wide_from + 2, n);
	transferred("wmempcpy", wide_from + 2, size);
	CALL(wmemset)(wide_to, 'x', n);
	transferred("wmemset", wide_to, size);
	CALL(wcsncpy)(wide_to, wide_from + 3, n);
	transferred("wcsncpy", wide_from + 3, size);
	CALL(wcpncpy)(wide_to, wide_from + 4, n);
	transferred("wcpncpy", wide_from + 4, size);
	wide_to[0] = 0;
	CALL(wcsncat)(wide_to, wide_from + 5, n);
	transferred("wcsncat", wide_from + 5, size);
}

static void wide_texts(const wchar_t *text, size_t length)
{
	const size_t size = length * sizeof(wchar_t);

	CALL(wcscpy)(wide_to, text);
	transferred("wcscpy", text, size);
	CALL(wcpcpy)(wide_to, text);
	transferred("wcpcpy", text, size);
	wide_to[0] = 0;
	CALL(wcscat)(wide_to, text);
	transferred("wcscat", text, size);
	free(CALL(wcsdup)(text));
	transferred("wcsdup", text, size);
	CALL(__wcscpy_chk)(wide_to, text, 2 * WIDE);
	transferred("wcscpy", text, size);
}

/* at_the_end moves a text to the end of a page that no page follows. */
static void *at_the_end(const void *text, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(p != MAP_FAILED && munmap(p + page, page) == 0, "mmap");
	for (size_t i = 0; i < size; i++)
		p[page - size + i] = ((const char *)text)[i];
	return p + page - size;
}

int main(void)
{
	static const size_t sizes[] = { 0, 1, 7, 100, 4096, 15000 };
	static const size_t lengths[] = { 0, 1, 15, 16, 17, 511, 512, 4095, 4096, 8190, 19999 };
	size_t i, j;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (j = 0; j < LONG - 1; j++)
			from[j] = 'a';
		bytes(sizes[i]);
	}
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		for (j = 0; j < LONG; j++)
			from[j] = j == lengths[i] ? 0 : 'a';
		texts(from, lengths[i]);
	}
	texts(at_the_end("0123456789", 11), 10);
	for (j = 0; j < WIDE; j++)
		wide_from[j] = 'a';
	wide_characters(0);
	wide_characters(9);
	wide_characters(1000);
	for (i = 0; i < WIDE; i += 1 + i / 3) {
		for (j = 0; j < WIDE; j++)
			wide_from[j] = j == i ? 0 : 'a';
		wide_texts(wide_from, i);
	}
	wide_texts(at_the_end(L"wide", 5 * sizeof(wchar_t)), 4);
	/* No page of this one is in memory before. */
	CALL(strcpy)(to, untouched + PAGE);
	transferred("strcpy", untouched + PAGE, 19);
	return tell();
}
