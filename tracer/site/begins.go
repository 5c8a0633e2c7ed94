package site

// Begins reports whether an instruction begins at addr. code begins at base with an instruction
// and is decoded in order. If an unknown instruction comes first, Begins reports false: a
// breakpoint inside an instruction would turn it into another one.
func Begins(arch Arch, code []byte, base, addr uint64) bool {
	m, err := machineOf(Options{Arch: arch})
	if err != nil {
		return false
	}
	for pc := base; pc <= addr && pc-base < uint64(len(code)); {
		if pc == addr {
			return true
		}
		in := m.decode(code[pc-base:], pc)
		if in.size == 0 {
			return false
		}
		pc += uint64(in.size)
	}
	return false
}

// Keeps reports whether the instruction at the start of code, at address pc, still has the same
// effect with a probe. The kernel replaces it with a breakpoint, and emulates it or runs a copy.
// It classifies instructions with a VEX or EVEX prefix by their opcode byte alone and ignores the
// opcode map. So vpbroadcastb, with 78 or 7a, looks like a conditional jump, which the kernel
// emulates. Nothing is broadcast then, and the program continues with the register's old value.
// Others it refuses. Instructions that this package does not know count as not kept.
func Keeps(arch Arch, code []byte, pc uint64) bool {
	m, err := machineOf(Options{Arch: arch})
	if err != nil {
		return false
	}
	in := m.decode(code, pc)
	return in.size != 0 && in.cost != Refused
}
