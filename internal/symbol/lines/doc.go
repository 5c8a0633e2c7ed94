// Package lines finds the source lines of code, and the functions that the compiler
// inlined, from the DWARF debugging information (versions 2 to 5) of ELF files.
//
// A [Table] has an index of the compilation units by address. The functions and lines of a
// unit are read when an address in it is first looked up. They are dropped again when too
// much memory is in use.
//
// Parts of the information may be in other files, which are read if they are found. Split
// DWARF is followed into .dwo files and the .dwp file of the program, alternate files (dwz
// -m) through .gnu_debugaltlink or .debug_sup. Without its .dwo file, a unit has lines,
// which are in the program itself, but no inlined functions. Without the alternate file,
// functions described there have the names of their symbols, and no name where they are
// inlined. Type units and .debug_types are not needed and are ignored.
//
// Input may be hostile. Sections are read through internal/symbol and are bounded together.
// Counts, depths, lengths and the work for one unit have limits. Malformed data ends a
// unit, not the table. This is why the package decodes DWARF itself: debug/dwarf states
// that it is not made for untrusted input (a number in the header of a line table makes it
// allocate any amount of memory), and it refuses a whole file because of one unit that it
// does not know.
package lines
