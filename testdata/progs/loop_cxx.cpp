// SPDX-License-Identifier: Apache-2.0
/*
 * loop_cxx is loop with operator new and the sized operator delete instead of malloc and
 * free, as C++ compilers call them.
 */
#include <new>
#define MAKE(size) ::operator new(size)
#define END(p, size) ::operator delete(p, size)
#include "loop.c"
