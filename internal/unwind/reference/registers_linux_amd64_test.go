package reference

import "golang.org/x/sys/unix"

// registerNames are gdb's names by DWARF number.
var registerNames = []string{
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
}

func inDWARFOrder(p *unix.PtraceRegs) []uint64 {
	return []uint64{
		p.Rax, p.Rdx, p.Rcx, p.Rbx, p.Rsi, p.Rdi, p.Rbp, p.Rsp,
		p.R8, p.R9, p.R10, p.R11, p.R12, p.R13, p.R14, p.R15, p.Rip,
	}
}
