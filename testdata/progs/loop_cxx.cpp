// SPDX-License-Identifier: Apache-2.0
/*
 * loop_cxx is loop with operator new and the sized operator delete, as compilers of
 * C++ call them, in place of malloc and free.
 */
#include <new>
#define MAKE(size) ::operator new(size)
#define END(p, size) ::operator delete(p, size)
#include "loop.c"
