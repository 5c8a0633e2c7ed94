/* Functions of many kinds: static, weak, aliased, IFUNC, without a size,
 * labels, a constructor, a hot and a cold part. Prints nothing. */
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline)) int quiet(int x) { return x * 3 + rand(); }
__attribute__((noinline, weak)) int weak_one(int x) { return quiet(x) + 1; }
__attribute__((noinline)) int __plain_impl(int x) { return quiet(x) + 2; }
extern int plain(int) __attribute__((weak, alias("__plain_impl")));
extern int _plain(int) __attribute__((alias("__plain_impl")));
__attribute__((noinline, cold)) void cold(void) { abort(); }
__attribute__((noinline)) int parts(int x)
{
	if (__builtin_expect(x > 1000, 0)) {
		cold();
	}
	return quiet(x);
}

static int chosen(int x) { return x + 7; }
static int (*choose(void))(int) { return chosen; }
int picked(int) __attribute__((ifunc("choose")));

__asm__(".text\n"
	".globl asm_func\n.type asm_func,@function\nasm_func: nop\nnop\nasm_inner: nop\nret\n"
	".globl asm_label\nasm_label: nop\nret\n"
	"asm_local: nop\nret\n");
void asm_func(void);
void asm_label(void);

static __attribute__((constructor)) void started(void) { asm_func(); }

int main(void)
{
	asm_label();
	return parts(1) + weak_one(2) + plain(3) + _plain(4) + picked(5) == 12345;
}
