package site

// Begins says whether an instruction begins at addr, of code that begins at base with
// one and is decoded in order. It is false where that meets what it does not know: a
// breakpoint within an instruction would make another one of it.
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

// Keeps says whether the instruction at the start of code, at address pc, still does the
// same where it has a probe. The kernel puts a breakpoint in its place, and emulates it or
// runs a copy of it. It knows those with a VEX or EVEX prefix by the byte of their opcode
// alone, without the map: vpbroadcastb, with 78 or 7a, reads as a conditional jump, which
// is emulated, so that nothing is broadcast, and the program goes on with what was in the
// register. Others it refuses. What is not known here does not count as kept.
func Keeps(arch Arch, code []byte, pc uint64) bool {
	m, err := machineOf(Options{Arch: arch})
	if err != nil {
		return false
	}
	in := m.decode(code, pc)
	return in.size != 0 && in.cost != Refused
}
