// Package lines finds the source lines of code, and the functions that the
// compiler put into others, from the DWARF debugging information (versions 2 to
// 5) of ELF files.
//
// A [Table] has an index of the compilation units by address. What a unit says
// of its functions and lines is read when an address in it is asked for, and
// forgotten when too much is held.
//
// Input may be hostile. Sections are read through internal/symbol and are
// bounded together; counts, depths, lengths and the work that one unit may
// cause have limits; whatever is malformed ends a unit, not the table. For that
// reason the package reads DWARF itself: debug/dwarf says of itself that it is
// not made for untrusted input (a number in the header of a line table makes it
// allocate any amount of memory), and it refuses a whole file for one unit that
// it does not know.
//
// Split DWARF (.dwo, .dwp) is not followed: of such units lines are known, as
// the program itself has them, but no inlined functions. Nor are alternate
// files (dwz -m, .gnu_debugaltlink): functions that are described there have
// the names of their symbols, and none where they are inlined. Types in
// .debug_types and type units are not needed.
package lines
