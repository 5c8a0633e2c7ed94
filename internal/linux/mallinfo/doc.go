// Package mallinfo reads the values of mallinfo2 of another process: the state of the GNU C
// library's malloc, from the memory of the process.
//
// The library's main_arena and mp_ are static variables. They are found in the symbol table of
// the library or of its debug file. The offsets of their fields come from the debugging
// information, or from [layouts] for known versions. Without these, the result is limited to
// what the list of mappings shows.
package mallinfo
