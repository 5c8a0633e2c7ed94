package proc

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// Head is what the head of an ELF file says of the machine it is for.
type Head struct {
	Bits    int // of a pointer: 32 or 64
	Machine elf.Machine
}

// HeadSize is how many bytes of a file ParseHead needs.
const HeadSize = 20

// ParseHead reads the first bytes of an ELF file.
func ParseHead(head []byte) (Head, error) {
	if len(head) < HeadSize || !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return Head{}, fmt.Errorf("no ELF file: %w", ErrSyntax)
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

// atExecFile is AT_EXECFN of the auxiliary vector: where the name of the program
// that was started is in the memory of the process.
const atExecFile = 31

// atEntry is AT_ENTRY: where the program, and not its interpreter, begins.
const atEntry = 9

// atBase is AT_BASE: where the kernel has mapped the program's interpreter, which for
// most is the dynamic loader.
const atBase = 7

// auxiliary finds a value in an auxiliary vector of words of so many bytes.
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
