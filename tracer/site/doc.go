// Package site chooses the instruction of a function on which a uprobe is put.
//
// A uprobe replaces an instruction by a breakpoint. Whatever it replaced has
// to be done afterwards: the kernel either computes the effect itself
// (emulates it) or runs a copy elsewhere with single-step mode on, which costs
// a second exception and, in a virtual machine, about 35 times as much. The
// first instruction of a function is often one of the expensive ones, so this
// package decodes the function's beginning and looks for a cheap instruction
// behind it that is as good as the entry.
//
// A site is as good as the entry if all of these hold:
//
//   - Every call reaches it, exactly once, whatever its arguments: it lies in
//     front of or on the first branch, and no branch leads to it or to
//     anything between the entry and it. One exception, on request: a site
//     behind the check that sorts out a null pointer ([Function.SkipNull]).
//   - The arguments that the probe needs are in known registers or, on i386,
//     words of the stack. They may have been copied or moved, and two factors
//     may have been multiplied. What a store through an unknown pointer may have
//     overwritten is not known any more.
//   - The stack pointer is at a known distance from the entry's, so that the
//     return address can be found.
//   - If a return probe will share the site: the return address is where the
//     kernel replaces it, which is the top of the stack on x86 and the link
//     register on arm64.
//
// Machine code is decoded in the order of its addresses. What no static look
// can find are indirect jumps (jump tables) to the middle of a function's
// prologue; compilers do not generate them.
//
// The package is pure: it takes bytes and addresses and knows neither files
// nor processes nor BPF.
package site
