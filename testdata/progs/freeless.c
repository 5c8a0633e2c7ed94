// SPDX-License-Identifier: Apache-2.0
/*
 * freeless: after the gate, ten calls of malloc, of 100 bytes and up. It calls nothing that
 * may lead to free, so that free is missing if a C library links each function separately,
 * as musl does in static programs.
 */
#include <stdlib.h>
#include <unistd.h>

void *volatile kept;

int main(void)
{
	char c;

	if (write(3, "ready\n", 6) != 6 || read(4, &c, 1) != 1)
		return 1;
	for (int i = 0; i < 10; i++)
		kept = malloc(100 + i);
	return 0;
}
