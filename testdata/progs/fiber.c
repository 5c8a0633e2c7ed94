// SPDX-License-Identifier: Apache-2.0
/*
 * fiber N: N blocks on a stack of its own whose outermost return address is zero, then N
 * with the address of a function that the tables mark as outermost.
 *
 * Everything else on that stack is the same both times: a tracer that takes the one for the
 * other has not checked that word. x86-64 only.
 */
#include "prog.h"

#if defined(__x86_64__)

static uint64_t stack[1024];

void body(void)
{
	void *p = malloc(32);

	__asm__ volatile("" : : "r"(p) : "memory");
	free(p);
}

/*
 * call_on runs body on the stack that ends at top, which holds a return address, and returns on
 * its own stack.
 */
void call_on(uint64_t *top);
extern char outermost[];

__asm__(".text\n"
	".globl call_on\n"
	".type call_on, @function\n"
	"call_on:\n"
	"	push	%rbx\n"
	"	mov	%rsp, %rbx\n"
	"	mov	%rdi, %rsp\n"
	"	jmp	on_fiber\n"
	".size call_on, . - call_on\n"
	".type on_fiber, @function\n"
	"on_fiber:\n"
	"	.cfi_startproc\n"
	"	sub	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call	body\n"
	"	nop\n"
	"	add	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	mov	%rbx, %rsp\n"
	"	pop	%rbx\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size on_fiber, . - on_fiber\n"
	".globl outermost\n"
	".type outermost, @function\n"
	"outermost:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	nop\n"
	"	nop\n"
	"	hlt\n"
	"	.cfi_endproc\n"
	".size outermost, . - outermost\n");

int main(int argc, char **argv)
{
	uint64_t *top = &stack[1000];
	unsigned long n, i;

	if (argc < 2)
		die("usage: fiber N");
	n = number(argv[1]);
	gate();
	for (i = 0; i < 2 * n; i++) {
		*top = i < n ? 0 : (uint64_t)&outermost[2];
		call_on(top);
	}
	_exit(0);
}

#else

int main(void)
{
	die("x86-64 only");
}

#endif
