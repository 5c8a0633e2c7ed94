// Package cfi reads call frame information: the tables that debuggers and exceptions use to
// find the frame of a function's caller without frame pointers.
//
// The tables are in the sections .eh_frame (Linux Standard Base 5.0, chapter 10.6) and
// .debug_frame (DWARF 5, section 6.4) of ELF files; [Sections] finds them. A [Section] has an
// [FDE] for each function. An FDE has a [Row] for each range of addresses, which describes how
// to restore the registers of the caller. An [Index] finds the FDE of an address.
//
// All addresses are as linked, before a load bias is added. The package reads files of both
// byte orders. On a 32-bit machine, sums of addresses wrap around at 32 bits. Offsets are as
// written in the file, and callers must wrap the sums that they compute from them
// ([Machine.Wrap]).
//
// Input may be hostile: time and memory are at most linear in the length of a section.
// Malformed input results in a *trace.SyntaxError whose offset is relative to the start of the
// section.
package cfi
