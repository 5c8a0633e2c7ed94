// Package unwind makes compact tables of the call frame information of ELF
// files: for every address of code one of a few hundred rules that lead to the
// caller. The program in the kernel looks the return addresses of a stack up in
// them, so that stacks need no frame pointers.
//
// A [Table] has rows of eight bytes, by address, and rules of eight bytes, each
// of which is there once. The program follows the stack pointer and the frame
// pointer only, so rules say no more than where the CFA, the caller's frame
// pointer and the return address are. What they cannot express is
// [Unsupported], and what is not understood in full is as well: a stack that
// ends early is told, one that is wrong is not.
//
// # What is left out
//
// Rows that differ in other registers only become one, also across functions.
// A gap between functions has a row of its own, [None], unless it is padding:
// up to 15 bytes before a function that begins at a multiple of 16, with the
// same rule on both sides. So every lookup of an address that an FDE covers
// gives that FDE's rule, and that of an address between functions gives None
// except in padding.
//
// Where the ranges of FDEs overlap, an address belongs to the one that begins
// last and, of those that begin at one address, to the first in the file,
// .eh_frame before .debug_frame. The linker's search table decides the same
// way. When an inner one ends, the outer one does not go on.
package unwind
