package reference

import (
	"debug/elf"
	"unsafe"

	"golang.org/x/sys/unix"
)

// registerNames are gdb's names by DWARF number.
var registerNames = map[elf.Machine][]string{
	elf.EM_X86_64: {
		"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
		"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
	},
	elf.EM_386: {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"},
}

func inDWARFOrder(p *unix.PtraceRegs, machine elf.Machine) []uint64 {
	if machine == elf.EM_386 {
		return inDWARFOrderI386((*[17]uint32)(unsafe.Pointer(p)))
	}
	return []uint64{
		p.Rax, p.Rdx, p.Rcx, p.Rbx, p.Rsi, p.Rdi, p.Rbp, p.Rsp,
		p.R8, p.R9, p.R10, p.R11, p.R12, p.R13, p.R14, p.R15, p.Rip,
	}
}

// inDWARFOrderI386 takes struct user_regs_struct32, which the kernel provides for a 32-bit
// process: ebx, ecx, edx, esi, edi, ebp, eax, four segments, orig_eax, eip, cs, eflags, esp,
// ss.
func inDWARFOrderI386(p *[17]uint32) (all []uint64) {
	for _, at := range []int{6, 1, 2, 0, 15, 5, 3, 4, 12} {
		all = append(all, uint64(p[at]))
	}
	return all
}
