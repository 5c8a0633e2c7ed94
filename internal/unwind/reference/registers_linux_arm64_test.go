package reference

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// registerNames are gdb's names by DWARF number.
var registerNames = func() (names []string) {
	for n := range 31 {
		names = append(names, fmt.Sprintf("x%d", n))
	}
	return append(names, "sp", "pc")
}()

func inDWARFOrder(p *unix.PtraceRegs) []uint64 {
	return append(p.Regs[:], p.Sp, p.Pc)
}
