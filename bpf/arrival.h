/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs of arrival.bpf.c and package tracer/arrival share. */
#ifndef RTRACE_ARRIVAL_H
#define RTRACE_ARRIVAL_H

#include "helpers.h"

#define COMM_BYTES 16 /* of a command name with its NUL (TASK_COMM_LEN) */

/* What has become of the one process that is taken. */
enum arrival_state {
	ARRIVAL_WAITS = 1, /* it waits in the kernel for somebody to hold it by ptrace */
	ARRIVAL_HELD, /* somebody does, or nothing could be done to it */
	ARRIVAL_STOPPED, /* nobody was there in time: it was sent SIGSTOP */
	ARRIVAL_CLOSED, /* there is none and will be none */
};

struct arrival {
	__u32 pid; /* as the namespace of the tracer numbers it */
	__u32 state; /* enum arrival_state */
	__u64 waited; /* ns that it waited in the kernel */
};

_Static_assert(sizeof(struct arrival) == 16, "arrival");

#endif
