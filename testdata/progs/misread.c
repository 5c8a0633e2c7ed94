// SPDX-License-Identifier: Apache-2.0
/*
 * misread: a function whose first instruction Linux would take for another one if it had a
 * probe, because Linux classifies instructions with a VEX prefix by their opcode alone.
 *
 * It calls lanes, which copies the lowest byte of its second argument 32 times, if the
 * processor can do that.
 *
 * Output: "right" or "wrong".
 */
#include "prog.h"

#if defined(__x86_64__)
/* vpbroadcastb has the opcode of js, a jump. */
__asm__(".text\n"
	".globl lanes\n"
	".type lanes, @function\n"
	"lanes:\n"
	"	vpbroadcastb %xmm0, %ymm0\n"
	"	vmovdqu %ymm0, (%rdi)\n"
	"	vzeroupper\n"
	"	ret\n"
	".size lanes, . - lanes\n");
extern void lanes(unsigned char *to, double value);
#else
__attribute__((noinline, used, visibility("default"))) void lanes(unsigned char *to, double value)
{
	memset(to, *(unsigned char *)&value, 32);
}
#endif

int main(void)
{
	unsigned char bytes[32] = { 0 }, want[32];
	uint64_t bits = 0x1122334455667788;
	double value;

	memcpy(&value, &bits, sizeof(value));
	memset(want, 0x88, sizeof(want));
#if defined(__x86_64__)
	if (!__builtin_cpu_supports("avx2")) {
		out("right\n");
		out_flush();
		return 0;
	}
#endif
	lanes(bytes, value);
	out(memcmp(bytes, want, sizeof(want)) == 0 ? "right\n" : "wrong\n");
	out_flush();
	return 0;
}
