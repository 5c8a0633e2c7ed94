package cover

import (
	"encoding/binary"

	"rtrace-bpf/tracer/site"
)

// arm64 decodes A64 code of the AAPCS64. Instructions are named as in the Arm Architecture
// Reference Manual; groups are those of C4.1.
type arm64 struct{}

// Numbers of registers. 31 is the stack pointer or zero, by instruction.
const (
	linkARM64 location = 30
	spARM64   location = 31
)

var arm64Args = []location{0, 1, 2, 3, 4, 5, 6, 7}

func (arm64) arguments() []location  { return arm64Args }
func (arm64) result() location       { return 0 }
func (arm64) stackPointer() location { return spARM64 }
func (arm64) framePointer() location { return 29 }
func (arm64) clobbered() locationSet { return locationSet{1<<19 - 1 | 1<<linkARM64} }
func (arm64) passed() locationSet    { return locationSet{1<<19 - 1} }
func (arm64) readable() locationSet  { return locationSet{1<<29 - 1 - 1<<18} }
func (arm64) link() location         { return linkARM64 }

func (m arm64) decode(code []byte, pc uint64) insn {
	if len(code) < 4 {
		return insn{}
	}
	cost, _ := site.Options{Arch: site.ARM64}.Cost(code, pc)
	w := word(binary.LittleEndian.Uint32(code))
	in := insn{size: 4, cost: cost}
	known := false
	// Bits 28:25 are the main groups.
	switch group := w >> 25 & 0xf; {
	case group&0xe == 0x8:
		known = w.immediate(&in)
	case group&0xe == 0xa:
		known = w.branch(&in, pc)
	case group&0x5 == 0x4:
		known = w.loadStore(&in)
	case group&0x7 == 0x5:
		known = w.registers(&in)
	case group&0x7 == 0x7:
		known = w.vectors(&in)
	}
	if !known {
		in.stopped = "its effects are not known"
	}
	return in
}

// word is an instruction of A64.
type word uint32

func (w word) bits(low, n int) uint32 { return uint32(w) >> low & (1<<n - 1) }
func (w word) is(mask, value uint32) bool {
	return uint32(w)&mask == value
}

// signed returns a signed field.
func (w word) signed(low, n int) int64 {
	return int64(int32(uint32(w)<<(32-low-n)) >> (32 - n))
}

func (w word) rd() location { return location(w.bits(0, 5)) }
func (w word) rn() location { return location(w.bits(5, 5)) }
func (w word) rm() location { return location(w.bits(16, 5)) }
func (w word) ra() location { return location(w.bits(10, 5)) }

// wide reports whether the operands have 64 bits.
func (w word) wide() bool { return w>>31 == 1 }

func (in *insn) add(e ...effect) { in.effects = append(in.effects, e...) }

// kill records that a register gets an unknown value; 31 is the zero register.
func (in *insn) kill(r location) {
	if r != spARM64 {
		in.add(effect{dst: reg(r)})
	}
}

// uses records that the values of registers may go anywhere; 31 is the zero register.
func (in *insn) uses(all ...location) {
	for _, r := range all {
		if r != spARM64 {
			in.add(effect{kind: use, a: reg(r)})
		}
	}
}

// source returns a register as an operand; 31 is the zero register.
func source(r location) operand {
	if r == spARM64 {
		return operand{kind: constant}
	}
	return reg(r)
}

// branch translates branches, exceptions and system instructions.
func (w word) branch(in *insn, pc uint64) bool {
	to := func(low, n int) uint64 { return pc + uint64(w.signed(low, n)<<2) }
	switch {
	case w.is(0xfc000000, 0x14000000): // b
		in.flow, in.target = jump, to(0, 26)
	case w.is(0xfc000000, 0x94000000): // bl
		in.flow, in.target = call, to(0, 26)
	case w.is(0xff000010, 0x54000000): // b.cond
		code := uint8(w.bits(0, 4))
		in.flow, in.target = branch, to(5, 19)
		in.when = Condition{Kind: Flags, Code: code}
		in.equal, in.not = code < 2, code == 1
		return code < 14
	case w.is(0x7e000000, 0x34000000): // cbz, cbnz
		in.flow, in.target = branch, to(5, 19)
		in.not = w.bits(24, 1) == 1
		in.when = Condition{Kind: RegZero, Reg: uint8(w.rd()), Bit: 32, Not: in.not}
		in.zero = operand{kind: low, reg: w.rd()}
		if w.wide() {
			in.when.Bit, in.zero.kind = 64, register
		}
		return w.rd() != spARM64
	case w.is(0x7e000000, 0x36000000): // tbz, tbnz
		in.flow, in.target = branch, to(5, 14)
		in.when = Condition{
			Kind: BitSet, Reg: uint8(w.rd()), Bit: uint8(w.bits(31, 1)<<5 | w.bits(19, 5)), Not: w.bits(24, 1) == 0,
		}
		return w.rd() != spARM64
	case w.is(0xfffffc1f, 0xd61f0000), w.is(0xfefff800, 0xd61f0800): // br, braa and similar
		in.flow = indirect
	case w.is(0xfffffc1f, 0xd63f0000), w.is(0xfefff800, 0xd63f0800): // blr, blraa and similar
		in.flow = call
		in.uses(w.rn())
	case w == 0xd65f03c0, w == 0xd65f0bff, w == 0xd65f0fff: // ret, retaa, retab
		in.flow = ret
	case w.is(0xffe0001f, 0xd4200000): // brk
		in.flow = halt
	default:
		return w.system(in)
	}
	return true
}

// system translates hints, barriers and system instructions.
func (w word) system(in *insn) bool {
	switch {
	case w.is(0xfffff01f, 0xd503201f):
		switch n := w.bits(5, 7); n {
		case 24, 25, 26, 27: // paciaz, paciasp, pacibz, pacibsp
			in.add(effect{kind: sign, dst: reg(linkARM64), a: operand{kind: constant, disp: 1}})
		case 28, 29, 30, 31: // autiaz and similar
			in.add(effect{kind: sign, dst: reg(linkARM64), a: operand{kind: constant}})
		case 7: // xpaclri
			in.kill(linkARM64)
		case 8, 10, 12, 14: // pacia1716 and similar
			in.kill(17)
		}
	case w.is(0xfffff01f, 0xd503301f): // barriers
	case w.is(0xfff00000, 0xd5300000): // mrs
		in.kill(w.rd())
	case w.is(0xffffffe0, 0xd50b7420), w.is(0xffffffe0, 0xd50b7460), w.is(0xffffffe0, 0xd50b7480): // dc zva, gva, gzva
		in.add(effect{dst: operand{kind: memory, reg: w.rd(), index: true}})
	case w == 0xd4000001: // svc
		in.uses(arm64Args...)
		in.add(effect{dst: operand{kind: far}}, effect{dst: reg(0)})
		in.flags.changes = true
	default:
		return false
	}
	return true
}

// immediate translates data processing with an immediate operand.
func (w word) immediate(in *insn) bool {
	switch w.bits(23, 3) {
	case 0, 1: // adr, adrp
		in.kill(w.rd())
	case 2:
		w.addImmediate(in)
	case 4:
		return w.logicalImmediate(in)
	case 5:
		w.moveWide(in)
	case 6, 7: // bit fields, extr
		in.uses(w.rn())
		if w.bits(23, 3) == 7 {
			in.uses(w.rm())
		} else if w.bits(29, 2) == 1 {
			in.uses(w.rd())
		}
		in.kill(w.rd())
	default: // addg, subg
		in.uses(w.rn())
		in.kill(w.rd())
		return w.rd() != spARM64
	}
	return true
}

func (w word) addImmediate(in *insn) {
	n := int64(w.bits(10, 12)) << (12 * w.bits(22, 1))
	minus, flags := w.bits(30, 1) == 1, w.bits(29, 1) == 1
	if flags {
		in.flags.changes = true
		if w.rd() == spARM64 && minus && w.rn() != spARM64 { // cmp
			in.flags.test, in.flags.with = reg(w.rn()), n
			if !w.wide() {
				in.flags.test.kind = low
			}
		}
		if w.rd() == spARM64 {
			return
		}
	}
	if minus {
		n = -n
	}
	if !w.wide() {
		in.add(effect{dst: reg(w.rd())})
	} else {
		in.add(effect{kind: address, dst: reg(w.rd()), a: operand{kind: memory, reg: w.rn(), disp: n}})
	}
	if flags {
		in.flags.test = reg(w.rd())
	}
}

func (w word) logicalImmediate(in *insn) bool {
	opc := w.bits(29, 2)
	in.flags.changes = opc == 3
	if w.rd() == spARM64 {
		return opc == 3 // tst; the others align the stack pointer
	}
	in.uses(w.rn())
	e := effect{dst: reg(w.rd())}
	if n, ok := w.bitmask(); ok && (opc == 0 || opc == 3) && w.rn() != spARM64 {
		e.kind, e.a, e.b = mask, reg(w.rn()), operand{kind: constant, disp: n}
		if !w.wide() {
			e.a.kind = low
		}
	}
	in.add(e)
	if opc == 3 && w.wide() {
		in.flags.test = reg(w.rd())
	}
	return true
}

// bitmask decodes the masks of one run of ones that begins at bit 0.
func (w word) bitmask() (int64, bool) {
	if w.bits(16, 6) != 0 || w.wide() != (w.bits(22, 1) == 1) {
		return 0, false
	}
	ones := w.bits(10, 6) + 1
	if ones >= 32 {
		return 0, false
	}
	return 1<<ones - 1, true
}

func (w word) moveWide(in *insn) {
	n := uint64(w.bits(5, 16)) << (16 * w.bits(21, 2))
	switch w.bits(29, 2) {
	case 0: // movn
		n = ^n
		if !w.wide() {
			n = uint64(uint32(n))
		}
	case 3: // movk
		in.kill(w.rd())
		return
	}
	if w.rd() != spARM64 {
		in.add(effect{dst: reg(w.rd()), a: operand{kind: constant, disp: int64(n)}})
	}
}

// registers translates data processing with register operands.
func (w word) registers(in *insn) bool {
	rd, rn, rm := w.rd(), w.rn(), w.rm()
	switch op := w.bits(24, 5); op {
	case 0x0a: // logical, shifted register
		in.flags.changes = w.bits(29, 2) == 3
		switch {
		case w.is(0xffe0ffe0, 0xaa0003e0) && rd != spARM64: // mov
			in.add(effect{dst: reg(rd), a: source(rm)})
			return true
		case w.is(0xffe0ffe0, 0x2a0003e0) && rd != spARM64:
			a := source(rm)
			if a.kind == register {
				a.kind = low
			}
			in.add(effect{dst: reg(rd), a: a})
			return true
		case w.is(0x7fe0fc1f, 0x6a00001f) && rn == rm && rn != spARM64: // tst
			in.flags.test = reg(rn)
			if !w.wide() {
				in.flags.test.kind = low
			}
			return true
		}
	case 0x0b: // add, sub
		in.flags.changes = w.bits(29, 1) == 1
		if w.bits(21, 1) == 1 {
			if rd == spARM64 && !in.flags.changes {
				return false // the extended form can write sp
			}
			if rn == spARM64 && rd != spARM64 {
				in.add(effect{kind: address, dst: reg(rd), a: operand{kind: memory, reg: rn, index: true}})
				return true
			}
		}
	case 0x1a: // with carry, conditional, one and two sources
		in.flags.changes = w.bits(29, 1) == 1
		if w.bits(21, 3) == 2 { // ccmp, ccmn: the low bits are not a register
			in.flags.changes = true
			return true
		}
		if w.is(0xffe0fc00, 0x9ac01000) && rd == spARM64 {
			return false // irg can write sp
		}
		if w.bits(21, 3) == 6 && w.bits(30, 1) == 1 { // one source
			rm = spARM64
		}
	case 0x1b: // three sources
		if w.is(0xffe0fc00, 0x9b007c00) && rd != spARM64 { // mul
			in.uses(rn, rm)
			in.add(effect{kind: multiply, dst: reg(rd), a: source(rn), b: source(rm)})
			return true
		}
		in.uses(w.ra())
	default:
		return false
	}
	in.uses(rn, rm)
	in.kill(rd)
	return true
}

// vectors translates floating point and vector instructions.
func (w word) vectors(in *insn) bool {
	switch {
	case w.is(0x5f20fc00, 0x1e200000), // conversions between floating point and integers
		w.is(0x5f200000, 0x1e000000),
		w.is(0xbfe0fc00, 0x0e003c00), // umov
		w.is(0xbfe0fc00, 0x0e002c00): // smov
		in.kill(w.rd())
	case w.is(0x5f203c00, 0x1e202000), w.is(0x5f200c00, 0x1e200400): // fcmp, fccmp
		in.flags.changes = true
	}
	return true
}
