package unwind

import (
	"encoding/binary"

	"rtrace-bpf/internal/unwind/cfi"
)

// Operations of DWARF expressions (DWARF 5, section 7.7.1) that compute the place of a frame.
const (
	opDeref      = 0x06
	opConst1u    = 0x08
	opAnd        = 0x1a
	opPlus       = 0x22
	opPlusUconst = 0x23
	opShl        = 0x24
	opGe         = 0x2a
	opLit0       = 0x30
	opBreg0      = 0x70
	opBregx      = 0x92
)

// place is the result of a simple expression: reg+offset or, with deref, *(reg+offset)+addend.
type place struct {
	reg            uint8
	offset, addend int64
	deref          bool
}

// simple recognises an expression that computes a place.
func simple(expr []byte) (place, bool) {
	var p place
	x := reader{expr}
	switch op := x.byte(); {
	case op >= opBreg0 && op < opBreg0+32:
		p.reg = op - opBreg0
	case op == opBregx:
		n := x.uleb()
		if n > 31 {
			return place{}, false
		}
		p.reg = uint8(n)
	default:
		return place{}, false
	}
	p.offset = x.sleb()
	for len(x.b) > 0 {
		switch op := x.byte(); {
		case op == opDeref && !p.deref:
			p.deref = true
		case op == opPlusUconst:
			p.add(x.uleb())
		case op >= opLit0 && op < opLit0+32 && x.byte() == opPlus:
			p.add(uint64(op - opLit0))
		case op == opConst1u:
			n := x.byte()
			if x.byte() != opPlus {
				return place{}, false
			}
			p.add(uint64(n))
		default:
			return place{}, false
		}
	}
	return p, x.b != nil
}

func (p *place) add(n uint64) {
	if p.deref {
		p.addend += int64(n)
	} else {
		p.offset += int64(n)
	}
}

// pltSlot recognises the expression that linkers write for a procedure linkage table: sp + word
// + (((pc & 15) >= n) << the word's logarithm). The entry's push ends at byte n.
func (t *translator) pltSlot(expr []byte) (int64, bool) {
	const place = 6 // of n
	var want [11]byte
	switch t.machine {
	case cfi.AMD64:
		want = [...]byte{opBreg0 + 7, 8, opBreg0 + 16, 0, opLit0 + 15, opAnd, 0, opGe, opLit0 + 3, opShl, opPlus}
	case cfi.I386:
		want = [...]byte{opBreg0 + 4, 4, opBreg0 + 8, 0, opLit0 + 15, opAnd, 0, opGe, opLit0 + 2, opShl, opPlus}
	}
	if len(expr) != len(want) || expr[place] < opLit0 || expr[place] > opLit0+15 || want[0] == 0 {
		return 0, false
	}
	want[place] = expr[place]
	return int64(expr[place] - opLit0), [len(want)]byte(expr) == want
}

// reader reads operands from an expression. After a read beyond the end its slice is nil.
type reader struct{ b []byte }

func (x *reader) byte() byte {
	if len(x.b) == 0 {
		x.b = nil
		return 0
	}
	v := x.b[0]
	x.b = x.b[1:]
	return v
}

func (x *reader) uleb() uint64 {
	v, n := binary.Uvarint(x.b)
	if n <= 0 {
		x.b = nil
		return 0
	}
	x.b = x.b[n:]
	return v
}

// sleb reads a signed number. The numbers in use fit into 63 bits.
func (x *reader) sleb() int64 {
	before := len(x.b)
	v := x.uleb()
	if bits := 7 * (before - len(x.b)); x.b != nil && bits < 64 {
		return int64(v<<(64-bits)) >> (64 - bits)
	}
	x.b = nil
	return 0
}
