package tracer

import (
	"debug/elf"

	"rtrace-bpf/internal/unwind/reference"
)

// nativeMachine is what this program is compiled for.
const nativeMachine = elf.EM_X86_64

// callSize is the size of a direct call instruction in bytes.
const callSize = 5

// registerName names a register by the number that instructions give it.
func registerName(n uint8) string {
	names := [...]string{
		"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
		"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
	}
	if int(n) < len(names) {
		return names[n]
	}
	return "none"
}

// dwarfRegisters returns the registers of a raw stack by DWARF number, as they
// are behind the return of the probed function.
func dwarfRegisters(raw *probeRawStack) reference.Registers {
	r := &raw.Regs
	var out reference.Registers
	for n, value := range []uint64{
		r.Rax, r.Rdx, r.Rcx, r.Rbx, r.Rsi, r.Rdi, r.Rbp, raw.Sp,
		r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15, raw.Pc,
	} {
		out.Set(uint64(n), value)
	}
	return out
}
