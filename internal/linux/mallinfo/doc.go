// Package mallinfo reads from outside what mallinfo2 says in a process: the state of the
// GNU C library's malloc, from the process's memory.
//
// The library's main_arena and mp_ are static variables: they are found by the symbol
// table of the file that has them, or of its debug file. Where their fields are is said
// by the debugging information, or known of the versions in [layouts]. Where neither is at
// hand, what the list of mappings tells is all that is known.
package mallinfo
