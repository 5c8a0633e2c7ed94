package reference

import (
	"debug/elf"
	"fmt"

	"golang.org/x/sys/unix"
)

// registerNames are gdb's names by DWARF number.
var registerNames = map[elf.Machine][]string{elf.EM_AARCH64: arm64Names()}

func arm64Names() (names []string) {
	for n := range 31 {
		names = append(names, fmt.Sprintf("x%d", n))
	}
	return append(names, "sp", "pc")
}

func inDWARFOrder(p *unix.PtraceRegs, _ elf.Machine) []uint64 {
	return append(p.Regs[:], p.Sp, p.Pc)
}
