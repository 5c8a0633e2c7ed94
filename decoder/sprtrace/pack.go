package sprtrace

import (
	"math/bits"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/sprtrace"
)

// packer builds packets.
type packer struct {
	order     binio.Order
	sizeFirst bool
	swapped   bool // the letters of types are in the other byte order
}

// code returns the type of a whole packet as the dump spells it: with the second letter
// repeated if the packet has it so.
func (p *packer) code(raw []byte) uint32 {
	at := 0
	if p.sizeFirst {
		at = 4
	}
	code := p.order.U32(raw[at:])
	if p.swapped {
		code = bits.ReverseBytes32(code)
	}
	return code
}

// start begins a packet, the only one in dst.
func (p *packer) start(dst []byte, code uint32) []byte {
	if p.swapped {
		code = bits.ReverseBytes32(code)
	}
	if p.sizeFirst {
		return p.order.AppendU32(p.order.AppendU32(dst, 0), code)
	}
	return p.order.AppendU32(p.order.AppendU32(dst, code), 0)
}

// end sets the size of the packet that fills b.
func (p *packer) end(b []byte) {
	size := uint32(len(b) - wire.HeadSize)
	if p.sizeFirst {
		p.order.PutU32(b, size+4)
	} else {
		p.order.PutU32(b[4:], size)
	}
}

func (p *packer) appendValue(dst []byte, v *Value) []byte {
	switch v.Field.Type {
	case wire.Dword, wire.Signed, wire.Hex:
		return p.order.AppendU32(dst, uint32(v.Num))
	case wire.Pointer:
		return p.order.AppendPtr(dst, v.Num)
	case wire.String:
		return appendText(dst, p.order, v.Text)
	case wire.Frames:
		dst = p.order.AppendU32(dst, uint32(len(v.Frames)))
		for _, f := range v.Frames {
			dst = p.order.AppendPtr(dst, f)
		}
	case wire.Pairs, wire.Texts:
		n := len(v.Texts)
		if v.Field.Type == wire.Pairs {
			n /= 2
		}
		dst = p.order.AppendU32(dst, uint32(n))
		for _, t := range v.Texts {
			dst = appendText(dst, p.order, t)
		}
	}
	return dst
}
