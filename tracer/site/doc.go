// Package site chooses the instruction of a function on which a uprobe is put.
//
// A uprobe replaces an instruction with a breakpoint. The kernel must carry out
// the replaced instruction afterwards. It either computes the effect itself
// (emulates it) or runs a copy elsewhere in single-step mode. Single-stepping
// costs a second exception and, in a virtual machine, about 35 times as much.
// The first instruction of a function is often one of the expensive ones, so
// this package decodes the beginning of the function and looks for a cheap
// instruction after it that is as good as the entry.
//
// A site is as good as the entry if all of these hold:
//
//   - Every call reaches it exactly once, whatever its arguments: it is before
//     or on the first branch, and no branch leads to it or to anything between
//     the entry and it. There is one exception, on request: a site after the
//     check for a null pointer ([Function.SkipNull]).
//   - The arguments that the probe needs are in known registers or, on i386, in
//     known words of the stack. They may have been copied or moved, and two
//     factors may have been multiplied. What a store through an unknown pointer
//     may have overwritten is unknown.
//   - The stack pointer is at a known distance from its value at the entry, so
//     that the return address can be found.
//   - If a return probe will share the site: the return address is where the
//     kernel replaces it, which is the top of the stack on x86 and the link
//     register on arm64.
//
// Machine code is decoded in the order of its addresses. A static analysis cannot find indirect
// jumps (jump tables) into the middle of a function's prologue; compilers do not generate them.
//
// The package is pure: it takes bytes and addresses and does not use files, processes or BPF.
package site
