package symbol

import (
	"debug/elf"
	"encoding/binary"
)

// Type returns how the file is linked: elf.ET_EXEC at fixed addresses, elf.ET_DYN for any
// address.
func (img *image) Type() elf.Type { return img.typ }

// Fixed reports whether the file is linked at fixed addresses.
func (img *image) Fixed() bool { return img.typ == elf.ET_EXEC }

// Machine returns the instruction set.
func (img *image) Machine() elf.Machine { return img.machine }

// Entry returns the address where a program or the dynamic loader starts to run; 0 for
// files that have no entry point.
func (img *image) Entry() uint64 { return img.entry }

// Class returns the word size in bits, 32 or 64.
func (img *image) Class() int {
	if img.wide {
		return 64
	}
	return 32
}

// Order returns the byte order of the file.
func (img *image) Order() binary.ByteOrder { return img.order }

// Detached reports whether the file is a debug file. Such a file has the addresses of the
// code but not the code itself, so offsets and lengths in the file mean nothing.
func (img *image) Detached() bool {
	text := img.named(".text")
	return text != nil && text.typ == elf.SHT_NOBITS
}

// Alone reports whether the file needs no other library. That holds for a statically linked
// program and for a library that builds on none, as a C library may.
func (img *image) Alone() bool {
	d, ok := readDynamic(img)
	if !ok {
		return false
	}
	_, needs := d.tags[elf.DT_NEEDED]
	return !needs
}

// GOT returns the address that position-independent i386 code holds in ebx while it calls
// through the PLT: the table of pointers that the dynamic loader fills in. It is 0 if the
// file does not give it.
func (img *image) GOT() uint64 {
	d, ok := readDynamic(img)
	if !ok {
		return 0
	}
	return d.tags[elf.DT_PLTGOT]
}

// Go reports whether Go's compiler made the program. It also recognises programs that
// contain C and programs without symbols.
func (img *image) Go() bool {
	return img.named(".go.buildinfo") != nil || img.named(".note.go.buildid") != nil
}
