package site

// Cost returns what the kernel does about a probe on the instruction at the start of code, which
// is at address pc, and the size of that instruction in bytes. The size is 0 if the instruction
// cannot be decoded.
func (o Options) Cost(code []byte, pc uint64) (cost Cost, size int) {
	m, err := machineOf(o)
	if err != nil {
		return Refused, 0
	}
	in := m.decode(code, pc)
	return in.cost, in.size
}

// Text returns the instruction at the start of code, which is at address pc, in the syntax of the
// GNU assembler.
func Text(arch Arch, code []byte, pc uint64) string {
	m, err := machineOf(Options{Arch: arch})
	if err != nil {
		return "(bad)"
	}
	return m.text(code, pc)
}
