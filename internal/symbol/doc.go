// Package symbol reads the names of functions from ELF files.
//
// A [File] provides what a tracer and a resolver need to know about an executable or shared
// object: how it is linked, which parts are code, its build ID, and its functions by
// address and by name. Functions come from .symtab and .dynsym (found through the dynamic
// segment in a file without section headers) and from the separate debug file, which is
// found by build ID or .gnu_debuglink.
//
// Input may be hostile. Every length is checked against the size of the file and a limit
// before memory is allocated, and malformed input results in a *trace.SyntaxError.
package symbol
