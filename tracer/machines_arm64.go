package tracer

import (
	"debug/elf"
	"strconv"

	"rtrace-bpf/internal/unwind/reference"
	"rtrace-bpf/tracer/site"
)

// machines are those whose programs can be traced on an arm64 kernel, which may
// run 32-bit ones as well.
var machines = []machine{{
	elf: elf.EM_AARCH64, arch: site.ARM64, word: 8, call: 4,
	register:  func(n uint8) string { return "x" + strconv.Itoa(int(n)) },
	registers: registersARM64,
	whole:     loadProbe, bounded: loadBounded,
	arenaHeap: 64 << 20,
}}

func registersARM64(raw *probeRawStack) reference.Registers {
	var out reference.Registers
	for n, value := range raw.Regs.Regs {
		out.Set(uint64(n), value)
	}
	out.Set(31, raw.Sp)
	out.Set(32, raw.Pc)
	return out
}
