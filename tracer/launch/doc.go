// Package launch starts a command and holds it with ptrace until a tracer has attached its
// probes, before the program or one of its libraries has called anything.
//
// The place depends on how the program begins. A static program is held at its first instruction.
// For a dynamic one, the loader maps all libraries, then sets up the storage of the first thread,
// relocates, and runs constructors. Each of these parts makes system calls that the others do not
// make, so the program is held at the first one after the mapping. A C library that is its own
// loader (musl) calls constructors from the program's entry point, and the program is held there.
//
// If the tracer ends in the meantime, the kernel kills the command.
package launch
