// Package symbol reads names of functions from ELF files.
//
// A [File] gives what a tracer and a resolver need of an executable or shared
// object: how it is linked, which parts are code, its build-id, and its
// functions by address and by name. Functions come from .symtab and .dynsym
// (found through the dynamic segment in a file without section headers) and
// from the separate debug file, found by build-id or .gnu_debuglink.
//
// Input may be hostile: every length is checked against the size of the file
// and a limit before memory is allocated, and malformed input gives a
// *trace.SyntaxError.
package symbol
