/* SPDX-License-Identifier: Apache-2.0 */
/* A block that is allocated and freed. */
#ifndef PAIR_H
#define PAIR_H

#include "prog.h"

static NOINLINE void pair(size_t n)
{
	void *p = malloc(n);

	if (!p)
		die("no memory");
	memset(p, 0x5a, n);
	free(p);
}

#endif /* PAIR_H */
