package proc

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// Head is the part of an ELF header that describes the machine.
type Head struct {
	Bits    int // size of a pointer: 32 or 64
	Machine elf.Machine
}

// HeadSize is how many bytes of a file ParseHead needs.
const HeadSize = 20

// ParseHead reads the first bytes of an ELF file.
func ParseHead(head []byte) (Head, error) {
	if len(head) < HeadSize || !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return Head{}, fmt.Errorf("not an ELF file: %w", ErrSyntax)
	}
	var h Head
	switch elf.Class(head[elf.EI_CLASS]) {
	case elf.ELFCLASS32:
		h.Bits = 32
	case elf.ELFCLASS64:
		h.Bits = 64
	default:
		return Head{}, fmt.Errorf("ELF file of class %d: %w", head[elf.EI_CLASS], ErrSyntax)
	}
	var order binary.ByteOrder
	switch elf.Data(head[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		order = binary.BigEndian
	default:
		return Head{}, fmt.Errorf("ELF file of byte order %d: %w", head[elf.EI_DATA], ErrSyntax)
	}
	h.Machine = elf.Machine(order.Uint16(head[18:])) // e_machine
	return h, nil
}

// atExecFile is AT_EXECFN of the auxiliary vector: the address of the name of the program that
// was started.
const atExecFile = 31

// atEntry is AT_ENTRY: the entry point of the program, not of its interpreter.
const atEntry = 9

// atBase is AT_BASE: the address at which the kernel has mapped the program's interpreter,
// usually the dynamic loader.
const atBase = 7

// auxiliary returns a value from an auxiliary vector with words of the given number of bytes.
func auxiliary(auxv []byte, word int, kind uint64) (value uint64, ok bool) {
	for ; len(auxv) >= 2*word; auxv = auxv[2*word:] {
		if nativeWord(auxv, word) == kind {
			return nativeWord(auxv[word:], word), true
		}
	}
	return 0, false
}

func nativeWord(b []byte, size int) uint64 {
	if size == 4 {
		return uint64(binary.NativeEndian.Uint32(b))
	}
	return binary.NativeEndian.Uint64(b)
}
