// SPDX-License-Identifier: Apache-2.0
/* plug_cxx: a library for dl that allocates with operator new, and brings libstdc++ along. */
#include <new>

extern "C" void *plug_leak(unsigned long n)
{
	return ::operator new(n);
}
