package site

// cost follows the functions uprobe_init_insn, branch_setup_xol_ops and
// push_setup_xol_ops of Linux, arch/x86/kernel/uprobes.c, from 5.10 to 6.18.
// code is exactly one instruction.
func (m x86) cost(code []byte, pc uint64) Cost {
	var data16, rep, bad bool
	var rex byte
	i := 0
prefixes:
	for ; i < len(code); i++ {
		switch c := code[i]; c {
		case 0x66:
			data16 = true
		case 0xf2, 0xf3:
			rep = true
		case 0x67, 0x64, 0x65:
		case 0x26, 0x2e, 0x36, 0x3e, 0xf0:
			// is_prefix_bad: es, cs, ss, ds, lock.
			bad = true
		default:
			break prefixes
		}
	}
	// In 32-bit code these are inc and dec.
	if m.bits == 64 && i < len(code) && code[i]&0xf0 == 0x40 {
		rex = code[i]
		i++
	}
	if bad || i == len(code) {
		return Refused
	}
	switch c := code[i]; {
	case c >= 0x50 && c <= 0x57:
		// push, alone or with exactly the prefix of r8 to r15.
		if len(code) == 1 || len(code) == 2 && rex == 0x41 {
			return Emulated
		}
		return SingleStep
	case c == 0x90:
		return m.nopCost(data16, rep, rex)
	case c == 0xe8, c == 0xe9, c == 0xeb, c >= 0x70 && c <= 0x7f:
		return branchCost(data16)
	case c == 0x0f && i+1 < len(code):
		return m.twoByteCost(code, i+1, data16, pc)
	}
	if m.refused(code[i:]) {
		return Refused
	}
	return SingleStep
}

// branchCost returns the cost of relative jumps and calls. Processors disagree about those with
// an operand size prefix.
func branchCost(data16 bool) Cost {
	if data16 {
		return Refused
	}
	return Emulated
}

// nopCost returns the cost of opcode 90. With REX.B it is an exchange with r8, which kernels that
// look only at the opcode skip like a nop. With f3 it is pause. With 66, kernels before 6.2
// refuse it.
func (m x86) nopCost(data16, rep bool, rex byte) Cost {
	switch {
	case rex&1 != 0:
		return Refused
	case rep || rex != 0:
		return SingleStep
	case data16 && !m.o.Nops:
		return Refused
	}
	return Emulated
}

// twoByteCost returns the cost of opcodes 0f xx; code[i] is xx.
func (m x86) twoByteCost(code []byte, i int, data16 bool, pc uint64) Cost {
	switch c := code[i]; {
	case c >= 0x80 && c <= 0x8f:
		return branchCost(data16)
	case c == 0x1f:
		// The kernel's list has one encoding of each length.
		if m.o.Nop5 && m.bits == 64 && string(code) == "\x0f\x1f\x44\x00\x00" && pc&0xfff <= 0x1000-5 {
			return NopOptimised
		}
		if m.o.Nops {
			return Emulated
		}
		return SingleStep
	case c <= 0x01, c >= 0x05 && c <= 0x09, c == 0x0b, c == 0x30, c == 0x34, c == 0x35,
		c == 0x37, c == 0x78, c == 0x79, c == 0xae:
		// good_2byte_insns.
		return Refused
	}
	return SingleStep
}

// refused reports whether code is one of the one-byte opcodes outside of good_insns_64 and
// good_insns_32 that compilers could generate, or a load of the stack segment.
func (m x86) refused(code []byte) bool {
	switch c := code[0]; c {
	case 0x6c, 0x6d, 0x6e, 0x6f, 0xcc, 0xcd, 0xce, 0xcf, 0xe4, 0xe5, 0xe6, 0xe7,
		0xec, 0xed, 0xee, 0xef, 0xf1, 0xf4, 0xfa, 0xfb:
		return true
	case 0x07, 0x17, 0x1f: // pop of a segment register; none in 64-bit code
		return true
	case 0x62: // bound; a prefix in 64-bit code
		return m.bits == 64
	case 0x8e:
		return len(code) > 1 && code[1]>>3&7 == 2
	}
	return false
}
