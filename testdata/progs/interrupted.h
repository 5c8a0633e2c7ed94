/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a function that are interrupted after each instruction, by the processor's trap flag. A
 * debugger is not needed, and the handler runs in the thread itself. Only x86-64.
 */
#ifndef INTERRUPTED_H
#define INTERRUPTED_H

#include "prog.h"
#include <pthread.h>
#include <signal.h>
#include <sys/ucontext.h>

static struct ledger l;

/* How many instructions of the present call were executed, with the call itself. */
static volatile unsigned long steps;
static void (*on_step)(ucontext_t *);

extern "C" {
/* stepped calls function(a, b, c) with the trap flag set. */
void *stepped(void *function, uintptr_t a, uintptr_t b, uintptr_t c);
extern char stepped_end[], stepped_back[];
void **stepped_slot __attribute__((used)); /* where the present call's return address is */
}

/* Where the call returns to. */
#define stepped_return ((void *)stepped_back)

__asm__(".text\n"
	".globl stepped, stepped_end, stepped_back\n"
	".type stepped, @function\n"
	"stepped:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %rdx\n"
	"	lea -8(%rsp), %rcx\n"
	"	mov %rcx, stepped_slot(%rip)\n"
	"	pushf\n"
	"	orl $0x100, (%rsp)\n"
	"	popf\n"
	"	call *%rax\n"
	"stepped_back:\n"
	"	pushf\n"
	"	andl $~0x100, (%rsp)\n"
	"	popf\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"stepped_end:\n"
	".size stepped, . - stepped\n"
	".section .note.GNU-stack, \"\", @progbits\n"
	".text\n");

static void stepped_once(int, siginfo_t *, void *context)
{
	ucontext_t *u = (ucontext_t *)context;
	char *pc = (char *)u->uc_mcontext.gregs[REG_RIP];

	/* The call has ended after its return instruction. */
	if ((pc >= (char *)stepped && pc < stepped_end) ||
	    (void **)u->uc_mcontext.gregs[REG_RSP] > stepped_slot)
		return;
	steps = steps + 1;
	on_step(u);
}

/* interrupt_calls makes stepped calls react after each instruction. */
static ALWAYS_INLINE void interrupt_calls(void (*react)(ucontext_t *), int flags)
{
	struct sigaction action;

	on_step = react;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = stepped_once;
	action.sa_flags = SA_SIGINFO | SA_NODEFER | flags;
	if (sigaction(SIGTRAP, &action, NULL))
		die("no handler");
}

/* The thread in which calls are interrupted. */
static struct {
	void (*run)(void);
	stack_t stack; /* of signal handlers */
} interrupted_start;

static ALWAYS_INLINE void *interrupted_begin(void *arg)
{
	l.tid = thread_id();
	if (sigaltstack(&interrupted_start.stack, NULL))
		die("no stack for signals");
	interrupted_start.run();
	return arg;
}

/*
 * interrupted_thread runs a thread in which stepped calls react after each instruction, and waits
 * for its end. With above, the handler has a stack of its own, above that of the thread.
 */
static ALWAYS_INLINE void interrupted_thread(void (*run)(void), void (*react)(ucontext_t *),
					     bool above)
{
	enum { STACK = 1 << 20 };
	pthread_attr_t attributes;
	pthread_t t;
	char *memory = (char *)mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || pthread_attr_init(&attributes) ||
	    pthread_attr_setstack(&attributes, memory, STACK))
		die("no stack");
	interrupt_calls(react, above ? SA_ONSTACK : 0);
	interrupted_start.run = run;
	interrupted_start.stack.ss_sp = memory + STACK;
	interrupted_start.stack.ss_size = STACK;
	if (pthread_create(&t, &attributes, interrupted_begin, NULL) || pthread_join(t, NULL))
		die("no thread");
}

#endif /* INTERRUPTED_H */
