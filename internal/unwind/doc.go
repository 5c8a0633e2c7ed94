// Package unwind builds compact tables from the call frame information of ELF files. They
// assign each address of code one of a few hundred rules that lead to the caller. The program
// in the kernel looks up the return addresses of a stack in them, so stacks need no frame
// pointers.
//
// A [Table] has rows of eight bytes, sorted by address, and distinct rules of eight bytes. The
// program follows only the stack pointer and the frame pointer, so a rule describes only where
// the CFA, the caller's frame pointer and the return address are. What a rule cannot express,
// or what the package does not fully understand, becomes [Unsupported]. A stack that ends early
// is reported as such; a wrong stack would not be noticed.
//
// # What is left out
//
// Rows that differ only in other registers are merged, even across functions. A gap between
// functions has a row of its own, [None], unless it is padding: up to 15 bytes before a
// function that begins at a multiple of 16, with the same rule on both sides. So looking up an
// address that an FDE covers returns that FDE's rule. Looking up an address between functions
// returns None, except in padding.
//
// Where the ranges of FDEs overlap, an address belongs to the one that begins last. If several
// begin at one address, it belongs to the first in the file, with .eh_frame before
// .debug_frame. The linker's search table decides the same way. When an inner FDE ends, the
// outer one does not continue.
package unwind
