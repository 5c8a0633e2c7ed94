package site

import (
	"encoding/binary"
	"slices"
)

// Arguments returns the places of the integer arguments at a function's entry, numbered as in
// [Place]; nil for an unknown architecture.
func Arguments(o Options) []uint8 {
	m, err := machineOf(o)
	if err != nil {
		return nil
	}
	return m.arguments()
}

// Selectable returns the addresses that the code of an IFUNC at addr computes, in their order.
// They are those of the functions from which it selects one, and perhaps of others that it uses.
// It recognises how compilers compute the address of a function in the same file: lea relative to
// rip, or to the GOT on i386; mov of a number in programs at fixed addresses; adrp and add.
func Selectable(o Options, code []byte, addr uint64) (all []uint64) {
	switch o.Arch {
	case AMD64, I386:
		all = selectableX86(o, code, addr)
	case ARM64:
		all = selectableARM64(code, addr)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func selectableX86(o Options, code []byte, addr uint64) (all []uint64) {
	m, err := machineOf(o)
	if err != nil {
		return nil
	}
	for offset := 0; offset < len(code); {
		pc := addr + uint64(offset)
		in := m.decode(code[offset:], pc)
		if in.size == 0 {
			return all
		}
		b := code[offset : offset+in.size]
		offset += in.size
		if o.Arch == AMD64 && len(b) > 0 && b[0]&0xf0 == 0x40 { // REX
			b = b[1:]
		}
		if len(b) < 5 {
			continue
		}
		number := uint64(int64(int32(binary.LittleEndian.Uint32(b[len(b)-4:]))))
		switch mod := b[1]; {
		case b[0]&0xf8 == 0xb8 && len(b) == 5: // mov $n, %reg
			all = append(all, uint64(uint32(number)))
		case b[0] == 0xc7 && len(b) == 6 && mod&0xf8 == 0xc0:
			all = append(all, m.addr(number))
		case b[0] != 0x8d || len(b) != 6: // lea
		case o.Arch == AMD64 && mod&0xc7 == 5: // n(%rip)
			all = append(all, pc+uint64(in.size)+number)
		case o.Arch == I386 && mod&0xc0 == 0x80 && o.GOT != 0: // n(%reg), where reg holds the GOT
			all = append(all, m.addr(o.GOT+number))
		}
	}
	return all
}

func selectableARM64(code []byte, addr uint64) (all []uint64) {
	const page = uint64(4096) // of adrp
	var pages [32]uint64
	for ; len(code) >= 4; code, addr = code[4:], addr+4 {
		w := binary.LittleEndian.Uint32(code)
		switch {
		case w&0x9f000000 == 0x90000000: // adrp xD, n
			high := int64(int32(w<<8)>>13) << 2 // bits 23:5, signed
			pages[w&31] = addr&^(page-1) + uint64(high|int64(w>>29&3))*page
		case w&0xffc00000 == 0x91000000 && pages[w>>5&31] != 0: // add xD, xN, #n
			all = append(all, pages[w>>5&31]+uint64(w>>10&0xfff))
		}
	}
	return all
}
