// Package cfi reads call frame information: the tables by which a debugger or
// an exception finds the frame of a function's caller, without frame pointers.
//
// They are in the sections .eh_frame (Linux Standard Base 5.0, chapter 10.6)
// and .debug_frame (DWARF 5, section 6.4) of ELF files, which [Sections] finds.
// A [Section] lists what it says of each function, as an [FDE]; that one tells,
// for ranges of addresses, how the registers of the caller are restored: a
// [Row]. An [Index] finds the FDE of an address.
//
// All addresses are as linked, before a load bias is added. Files of both byte
// orders are read. On a 32-bit machine sums of addresses wrap around at 32 bits;
// offsets are as they are written, and it is the user's task to wrap what they
// lead to ([Machine.Wrap]).
//
// Input may be hostile: the work is linear in the length of a section, memory
// is bounded by it, and what is wrong gives a *trace.SyntaxError whose offset
// counts from the start of the section.
package cfi
