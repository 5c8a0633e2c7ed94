/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs of arrival.bpf.c and package tracer/arrival share. */
#ifndef RTRACE_ARRIVAL_H
#define RTRACE_ARRIVAL_H

#include "helpers.h"

#define COMM_BYTES 16 /* bytes of a command name with its NUL (TASK_COMM_LEN) */

/* What has become of the selected process. */
enum arrival_state {
	ARRIVAL_WAITS = 1, /* it waits in the kernel until it is seized with ptrace */
	ARRIVAL_HELD, /* it is seized, or nothing could be done */
	ARRIVAL_STOPPED, /* it was not seized in time: SIGSTOP was sent to it */
	ARRIVAL_CLOSED, /* there is no process and will be none */
};

struct arrival {
	__u32 pid; /* in the tracer's PID namespace */
	__u32 state; /* enum arrival_state */
	__u64 waited; /* ns that it waited in the kernel */
};

_Static_assert(sizeof(struct arrival) == 16, "arrival");

#endif
