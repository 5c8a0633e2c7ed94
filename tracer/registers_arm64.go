package tracer

import (
	"debug/elf"
	"strconv"

	"rtrace-bpf/internal/unwind/reference"
)

// nativeMachine is what this program is compiled for.
const nativeMachine = elf.EM_AARCH64

// callSize is the size of a direct call instruction in bytes.
const callSize = 4

// registerName names a register by the number that instructions give it.
func registerName(n uint8) string { return "x" + strconv.Itoa(int(n)) }

// dwarfRegisters returns the registers of a raw stack by DWARF number, as they
// are behind the return of the probed function.
func dwarfRegisters(raw *probeRawStack) reference.Registers {
	var out reference.Registers
	for n, value := range raw.Regs.Regs {
		out.Set(uint64(n), value)
	}
	out.Set(31, raw.Sp)
	out.Set(32, raw.Pc)
	return out
}
