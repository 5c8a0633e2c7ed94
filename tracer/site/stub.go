package site

import "encoding/binary"

// StubSize is the most bytes of a PLT stub that [Stub] reads.
const StubSize = 24

// Stub returns the address of the pointer, an entry of the GOT, through which the PLT stub at
// addr jumps. ok is false for code that does anything else.
func Stub(o Options, code []byte, addr uint64) (slot uint64, ok bool) {
	code = code[:min(len(code), StubSize)]
	if o.Arch == ARM64 {
		return stubARM64(code, addr)
	}
	m, err := machineOf(o)
	if err != nil {
		return 0, false
	}
	return stubX86(m, code, addr)
}

// stubX86 recognises landing pads followed by a jump through memory.
func stubX86(m machine, code []byte, addr uint64) (uint64, bool) {
	for offset := 0; offset < len(code); {
		in := m.decode(code[offset:], addr+uint64(offset))
		if in.size == 0 || !in.hint {
			return in.slot, in.kind == leave && in.slot != 0
		}
		offset += in.size
	}
	return 0, false
}

// stubARM64 recognises what linkers write, in this order: an optional landing pad; adrp x16,
// slot; ldr x17, [x16, slot]; add x16, x16, slot; autia1716 if pointers are signed; br x17.
func stubARM64(code []byte, addr uint64) (uint64, bool) {
	const page = uint64(4096) // of adrp, whatever page size the kernel uses
	var base, slot uint64
	for ; len(code) >= 4; code, addr = code[4:], addr+4 {
		switch w := binary.LittleEndian.Uint32(code); {
		case w&^(3<<6) == bti && base == 0:
		case w&0x9f00001f == 0x90000010 && base == 0: // adrp x16
			high := int64(int32(w<<8)>>13) << 2 // bits 23:5, signed
			base = addr&^(page-1) + uint64(high|int64(w>>29&3))*page
		case w&0xffc003ff == 0xf9400211 && base != 0 && slot == 0: // ldr x17, [x16, #n]
			slot = base + uint64(w>>10&0xfff)*8
		case w&0xffc003ff == 0x91000210 && slot != 0: // add x16, x16, #n
		case w == 0xd503219f || w == 0xd50321df: // autia1716, autib1716
		case w == 0xd61f0220: // br x17
			return slot, slot != 0
		default:
			return 0, false
		}
	}
	return 0, false
}
