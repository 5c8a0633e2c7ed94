package process

import (
	"debug/elf"

	"rtrace-bpf/internal/unwind/reference"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/site"
)

// Machines lists the kinds of programs that can be traced on an x86-64 kernel.
var Machines = []Machine{
	{
		ELF: elf.EM_X86_64, Arch: site.AMD64, Word: 8, Call: 5,
		register: registerAMD64, Registers: registersAMD64,
		StayInside: func(raw *object.ProbeRawStack) { raw.Pc, raw.Sp = raw.Regs.Rip, raw.Regs.Rsp },
		Whole:      object.LoadProbe, Bounded: object.LoadBounded,
		ArenaHeap: 64 << 20,
	},
	{
		// The system call uname returns i686 to 32-bit programs with the personality
		// for that (COMPAT_UTS_MACHINE).
		ELF: elf.EM_386, Arch: site.I386, name: "i686", Word: 4, Call: 5,
		register: registerI386, Registers: registersI386,
		Whole: object.LoadProbe32, Bounded: object.LoadBounded32,
		ArenaHeap: 1 << 20, Trap: true,
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

func registersAMD64(raw *object.ProbeRawStack) reference.Registers {
	r := &raw.Regs
	return numbered(
		r.Rax, r.Rdx, r.Rcx, r.Rbx, r.Rsi, r.Rdi, r.Rbp, raw.Sp,
		r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15, raw.Pc,
	)
}

// registersI386 returns the low halves of the registers, which are all that a 32-bit
// program sees.
func registersI386(raw *object.ProbeRawStack) reference.Registers {
	r := &raw.Regs
	low := []uint64{r.Rax, r.Rcx, r.Rdx, r.Rbx, raw.Sp, r.Rbp, r.Rsi, r.Rdi, raw.Pc}
	for i := range low {
		low[i] = uint64(uint32(low[i]))
	}
	return numbered(low...)
}

// numbered returns registers with these values, numbered from 0.
func numbered(values ...uint64) reference.Registers {
	var out reference.Registers
	for n, value := range values {
		out.Set(uint64(n), value)
	}
	return out
}
