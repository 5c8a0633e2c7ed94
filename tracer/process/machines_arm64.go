package process

import (
	"debug/elf"
	"strconv"

	"rtrace-bpf/internal/unwind/reference"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/site"
)

// Machines lists the kinds of programs that can be traced on an arm64 kernel. 32-bit ones,
// which it may run as well, cannot.
var Machines = []Machine{{
	ELF: elf.EM_AARCH64, Arch: site.ARM64, Word: 8, Call: 4,
	register:  func(n uint8) string { return "x" + strconv.Itoa(int(n)) },
	Registers: registersARM64, StayInside: func(raw *object.ProbeRawStack) { raw.Pc, raw.Sp = raw.Regs.Pc, raw.Regs.Sp },
	Whole: object.LoadProbe, Bounded: object.LoadBounded,
	ArenaHeap: 64 << 20,
}}

func registersARM64(raw *object.ProbeRawStack) reference.Registers {
	var out reference.Registers
	for n, value := range raw.Regs.Regs {
		out.Set(uint64(n), value)
	}
	out.Set(31, raw.Sp)
	out.Set(32, raw.Pc)
	return out
}
