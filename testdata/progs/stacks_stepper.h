/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps for processors whose step flag a program cannot set itself: a child traces the thread,
 * makes it execute one instruction at a time, and runs a handler in it after each. The handler,
 * up to its return, runs without stops except those at system calls.
 */
#ifndef STACKS_STEPPER_H
#define STACKS_STEPPER_H

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum step_state { STEP_WAIT, STEP_GO, STEP_DONE, STEP_FAILED };

static __thread volatile enum step_state *step_state; /* shared with the stepper */
static __thread pid_t stepper;

static void step(int sig)
{
	void *p = malloc((size_t)sig + 90);

	OPAQUE(p);
	free(p);
}

static void steps_install(void)
{
	install(SIGTRAP, step, SA_RESTART);
}

/* resume lets the thread run in some way and waits for its next stop. */
static int resume(enum __ptrace_request how, pid_t tid, int sig)
{
	int status;

	if (ptrace(how, tid, NULL, (void *)(uintptr_t)sig) ||
	    waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		_exit(96);
	return WSTOPSIG(status);
}

/* over_handler runs a handler until after the system call with which it returns. */
static void over_handler(pid_t tid)
{
	struct __ptrace_syscall_info call;

	for (;;) {
		if (resume(PTRACE_SYSCALL, tid, 0) != (SIGTRAP | 0x80) ||
		    ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(call), &call) <= 0)
			_exit(95);
		if (call.op == PTRACE_SYSCALL_INFO_ENTRY && call.entry.nr == SYS_rt_sigreturn)
			break;
	}
	if (resume(PTRACE_SYSCALL, tid, 0) != (SIGTRAP | 0x80))
		_exit(94);
}

static void step_thread(pid_t tid, volatile enum step_state *state)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD) ||
	    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || waitpid(tid, &status, __WALL) != tid) {
		*state = STEP_FAILED;
		_exit(97);
	}
	*state = STEP_GO;
	for (;;) {
		if (resume(PTRACE_SINGLESTEP, tid, 0) != SIGTRAP)
			_exit(93);
		if (*state == STEP_DONE)
			break;
		/* Into the handler, whose first instruction is the next stop. */
		if (resume(PTRACE_SINGLESTEP, tid, SIGTRAP) != SIGTRAP)
			_exit(92);
		over_handler(tid);
	}
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	_exit(0);
}

static ALWAYS_INLINE void steps_begin(void)
{
	pid_t tid = thread_id();
	void *shared = mmap(NULL, sizeof(*step_state), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		die("no memory for the stepper");
	step_state = (volatile enum step_state *)shared;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	stepper = fork();
	if (stepper < 0)
		die("no stepper");
	if (!stepper)
		step_thread(tid, step_state);
	while (*step_state == STEP_WAIT)
		; /* must not call anything, because the thread is stepped from somewhere in here on */
	if (*step_state == STEP_FAILED)
		die("the stepper cannot trace");
}

static ALWAYS_INLINE void steps_end(void)
{
	int status;

	*step_state = STEP_DONE;
	if (waitpid(stepper, &status, 0) != stepper || status)
		die("the stepper ended with status %#x", status);
	munmap((void *)step_state, sizeof(*step_state));
}

#endif /* STACKS_STEPPER_H */
