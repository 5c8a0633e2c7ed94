package tracer

import (
	"debug/elf"

	"rtrace-bpf/internal/unwind/reference"
	"rtrace-bpf/tracer/site"
)

// machines are those whose programs an x86-64 kernel runs.
var machines = []machine{
	{
		elf: elf.EM_X86_64, arch: site.AMD64, word: 8, call: 5,
		register: registerAMD64, registers: registersAMD64,
		whole: loadProbe, bounded: loadBounded,
		arenaHeap: 64 << 20,
	},
	{
		// uname says i686 to 32-bit programs that ask for their kind of machine
		// (COMPAT_UTS_MACHINE).
		elf: elf.EM_386, arch: site.I386, name: "i686", word: 4, call: 5,
		register: registerI386, registers: registersI386,
		whole: loadProbe32, bounded: loadBounded32,
		arenaHeap: 1 << 20, trap: true,
	},
}

func registerAMD64(n uint8) string {
	return nameOf(n, "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
		"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15")
}

func registerI386(n uint8) string {
	return nameOf(n, "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi")
}

func nameOf(n uint8, names ...string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return "none"
}

func registersAMD64(raw *probeRawStack) reference.Registers {
	r := &raw.Regs
	return numbered(
		r.Rax, r.Rdx, r.Rcx, r.Rbx, r.Rsi, r.Rdi, r.Rbp, raw.Sp,
		r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15, raw.Pc,
	)
}

// registersI386 takes the low halves: a 32-bit program does not see the others.
func registersI386(raw *probeRawStack) reference.Registers {
	r := &raw.Regs
	low := []uint64{r.Rax, r.Rcx, r.Rdx, r.Rbx, raw.Sp, r.Rbp, r.Rsi, r.Rdi, raw.Pc}
	for i := range low {
		low[i] = uint64(uint32(low[i]))
	}
	return numbered(low...)
}

// numbered returns registers, the first of which has number 0.
func numbered(values ...uint64) reference.Registers {
	var out reference.Registers
	for n, value := range values {
		out.Set(uint64(n), value)
	}
	return out
}
