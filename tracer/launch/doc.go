// Package launch starts a command and holds it, by ptrace, until a tracer has its
// probes in: before the program or one of its libraries has called anything.
//
// Where that is depends on how the program begins. A static one is held at its first
// instruction. For a dynamic one the loader maps all libraries, then sets up the
// storage of the first thread, relocates, and runs constructors; each part makes
// system calls that the others do not make, so it is held at the first one behind the
// mapping. A C library that is its own loader (musl) calls constructors from the
// program's entry point, and the program is held there.
//
// If the tracer ends meanwhile, the kernel kills the command.
package launch
