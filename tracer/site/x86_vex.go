package site

// vexLength returns the length of an instruction with a VEX or EVEX prefix, or 0 if code does not
// start with one. x86asm knows many of them but has wrong lengths for some, such as vzeroupper.
//
// None of these instructions is a branch, and none can be a site: the kernel classifies them by
// the opcode byte alone and ignores the opcode map, so vzeroupper (77) looks like a conditional
// jump.
//
// In 32-bit code the bytes are prefixes only before what would be a register operand; otherwise
// they are les, lds and bound.
//
// Intel SDM, volume 2, 2.3.5 and 2.7.1.
func vexLength(code []byte, bits int) int {
	opcodes, i, ok := vexOpcode(code, bits)
	if !ok {
		return 0
	}
	opcode := code[i]
	n := i + 1
	if opcodes != 1 || opcode != 0x77 { // vzeroupper, vzeroall
		m := modrmLength(code[n:])
		if m == 0 {
			return 0
		}
		n += m
		if opcodes == 3 || opcodes == 1 && vexImmediate(opcode) {
			n++
		}
	}
	if n > len(code) {
		return 0
	}
	return n
}

// vexOpcode returns the map of such an instruction, and the index of its opcode byte.
func vexOpcode(code []byte, bits int) (opcodes byte, i int, ok bool) {
	if len(code) < 3 || bits == 32 && code[1] < 0xc0 {
		return 0, 0, false
	}
	switch code[0] {
	case 0xc5:
		opcodes, i = 1, 2
	case 0xc4:
		opcodes, i = code[1]&0x1f, 3
	case 0x62:
		opcodes, i = code[1]&0x07, 4
	default:
		return 0, 0, false
	}
	return opcodes, i, i < len(code)
}

// vexPlain reports whether such an instruction changes only vector registers. memset and similar
// functions begin with such instructions, which spread a byte over a register.
func vexPlain(code []byte, bits int) bool {
	opcodes, i, ok := vexOpcode(code, bits)
	if !ok {
		return false
	}
	switch opcode := code[i]; {
	case opcodes == 1 && opcode >= 0x60 && opcode <= 0x70: // vpunpck…, vmovd, vmovdqu, vpshufd
		return true
	case opcodes == 1 && (opcode == 0x57 || opcode == 0xef): // vxorps, vpxor
		return true
	case opcodes == 2 && (opcode == 0x00 || opcode == 0x58 || opcode == 0x59): // vpshufb, vpbroadcastd, vpbroadcastq
		return true
	case opcodes == 2 && opcode >= 0x78 && opcode <= 0x7c: // vpbroadcastb, vpbroadcastw, also from general registers
		return true
	}
	return false
}

// vexImmediate reports whether an opcode of map 1 is followed by an immediate byte.
func vexImmediate(opcode byte) bool {
	switch opcode {
	case 0x70, 0x71, 0x72, 0x73, 0xc2, 0xc4, 0xc5, 0xc6:
		return true
	}
	return false
}

// modrmLength returns the length of a ModRM byte with what belongs to it, or 0 if it is
// truncated.
func modrmLength(code []byte) int {
	if len(code) == 0 {
		return 0
	}
	mod, rm := code[0]>>6, code[0]&7
	n := 1
	if mod == 3 {
		return n
	}
	if rm == 4 {
		if len(code) < 2 {
			return 0
		}
		n++
		if mod == 0 && code[1]&7 == 5 {
			n += 4
		}
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && rm == 5:
		n += 4
	}
	return n
}
