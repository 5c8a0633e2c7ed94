/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs share whose resources the tracer's modules record. They have no gate. Each
 * prints, at its end and on standard output, what was allocated and freed, one line each, in the
 * order of one thread:
 *
 *	OP FUNCTION RESOURCE ID SIZE [NAME=VALUE]...
 *
 * with OP alloc or free, ID in hexadecimal and SIZE in decimal. A number of which the program
 * knows only the limits is LEAST..MOST.
 */
#ifndef RESOURCES_H
#define RESOURCES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char resources_log[1 << 18];
static size_t resources_logged;

/* say adds a line; it neither allocates nor opens anything. */
static __attribute__((unused, format(printf, 1, 2))) void say(const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(resources_log + resources_logged,
		      sizeof(resources_log) - resources_logged - 1, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(resources_log) - resources_logged - 1)
		abort();
	resources_logged += (size_t)n;
	resources_log[resources_logged++] = '\n';
}

static __attribute__((unused)) void allocated(const char *function, const char *resource,
					      uintptr_t id, size_t size, const char *args)
{
	say("alloc %s %s 0x%lx %zu%s", function, resource, (unsigned long)id, size, args);
}

static __attribute__((unused)) void freed(const char *function, const char *resource, uintptr_t id)
{
	say("free %s %s 0x%lx 0", function, resource, (unsigned long)id);
}

/* need ends the program if a necessary operation failed. */
static __attribute__((unused)) void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	_exit(1);
}

/* tell writes the lines of say. */
static __attribute__((unused)) int tell(void)
{
	for (size_t at = 0; at < resources_logged;) {
		ssize_t n = write(1, resources_log + at, resources_logged - at);

		need(n > 0, "write");
		at += (size_t)n;
	}
	return 0;
}

static __attribute__((unused)) uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
