// SPDX-License-Identifier: Apache-2.0
/*
 * rates ROUNDS WORK [PAUSE]: after the gate, ROUNDS rounds of malloc and free, each with
 * WORK steps of computation; every 4th round also has calloc and free, every 16th
 * realloc(0, 64) and free. With PAUSE, the program sleeps for PAUSE microseconds after each
 * 64th round, as one that answers requests. With ROUNDS 0 it continues until SIGTERM.
 *
 * The JSON has the numbers of calls of each function, and "cpu_ns", the CPU time.
 */
#include "prog.h"
#include <signal.h>
#include <time.h>

static volatile sig_atomic_t stop;
static volatile unsigned long sink;

static void on_term(int number)
{
	(void)number;
	stop = 1;
}

int main(int argc, char **argv)
{
	unsigned long rounds, work, pause = 0, i, j, mallocs = 0, callocs = 0, reallocs = 0;
	struct timespec t;

	if (argc < 3)
		die("usage: rates ROUNDS WORK [PAUSE]");
	rounds = number(argv[1]);
	work = number(argv[2]);
	if (argc > 3)
		pause = number(argv[3]);
	signal(SIGTERM, on_term);
	gate();
	for (i = 0; !stop && (rounds == 0 || i < rounds); i++) {
		free(malloc(100));
		mallocs++;
		if (i % 4 == 0) {
			free(calloc(1, 50));
			callocs++;
		}
		if (i % 16 == 0) {
			free(realloc(NULL, 64));
			reallocs++;
		}
		for (j = 0; j < work; j++)
			sink += j;
		if (pause && i % 64 == 63)
			usleep((useconds_t)pause);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	printf("{\"malloc\":%lu,\"calloc\":%lu,\"realloc\":%lu,\"free\":%lu,\"cpu_ns\":%lu}\n",
	       mallocs, callocs, reallocs, mallocs + callocs + reallocs,
	       (unsigned long)t.tv_sec * 1000000000 + (unsigned long)t.tv_nsec);
	return 0;
}
