/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loops of many turns that run rarely. The verifier checks each turn of an ordinary loop, which
 * takes most of the time to load a program; for bpf_loop it checks one. Running bpf_loop costs
 * more.
 */
#ifndef RTRACE_TURNS_H
#define RTRACE_TURNS_H

#include "helpers.h"

enum { GO_ON = 0, STOP = 1 };

/* take_turns calls turn with 0 and so on, at most n times, until it returns STOP. */
#ifdef BOUNDED
#define take_turns(n, turn, context) \
	for (__u32 i_ = 0; i_ < (n) && turn(i_, context) == GO_ON; i_++)
#else
#define take_turns(n, turn, context) bpf_loop(n, turn, context, 0)
#endif

#endif
