package site

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"
)

// arm64 decodes A64 code. It classifies instructions by the groups of the Arm Architecture
// Reference Manual, C4.1. arm64asm is used only for printing, because it does not know later
// additions and does not show which operands are written.
type arm64 struct{ o Options }

// Numbers of registers. 31 is the stack pointer or zero, by instruction.
const (
	x17      = 17
	x29      = 29
	x30      = 30
	spOrZero = 31
)

var arm64Args = []uint8{0, 1, 2, 3, 4, 5, 6, 7} // AAPCS64, 6.8.2

func (arm64) arguments() []uint8 { return arm64Args }
func (arm64) result() uint8      { return 0 }
func (arm64) readable() uint32   { return 1<<x29 - 1 - 1<<18 }
func (arm64) frame() uint8       { return x29 }
func (arm64) step() int          { return 4 }

func (arm64) addr(a uint64) uint64 { return a }

const (
	bti  = 0xd503241f // and c, j, jc in bits 7:6
	nopA = 0xd503201f
)

func (m arm64) decode(code []byte, pc uint64) insn {
	if len(code) < 4 {
		return insn{}
	}
	w := binary.LittleEndian.Uint32(code)
	in := insn{size: 4, cost: SingleStep}
	// Bits 28:25 are the main groups.
	switch group := w >> 25 & 0xf; {
	case group&0xe == 0x8:
		m.immediate(w, &in)
	case group&0xe == 0xa:
		m.branch(w, pc, &in)
	case group&0x5 == 0x4:
		loadStoreARM64(w, &in)
	case group&0x7 == 0x5:
		registerARM64(w, &in)
	case group&0x7 == 0x7:
		// Floating point and vectors. Some write a general register and some the flags: assume
		// that each does both.
		in.fx.flags = true
		in.fx.killARM64(w)
	default:
		in.kind = unknown // unallocated, SVE, SME
	}
	return in
}

// killARM64 adds Rd or Rt, bits 4:0, to the killed registers; 31 is the zero register.
func (fx *effects) killARM64(w uint32) {
	if rd := uint8(w & 31); rd != spOrZero {
		fx.killReg(rd)
		fx.linkSet = fx.linkSet || rd == x30
	}
}

// reads records that registers are used.
func (fx *effects) reads(regs ...uint32) {
	for _, r := range regs {
		fx.linkRead = fx.linkRead || r&31 == x30
	}
}

// branchARM64 decodes the branches whose target is in the instruction.
func branchARM64(w uint32, pc uint64) (kind, uint64, bool) {
	// imm returns a signed field of the given width, which counts words, in bytes.
	imm := func(shift, width uint) uint64 {
		return uint64(int64(int32(w<<(32-shift-width))) >> (32 - width) << 2)
	}
	switch {
	case w&0xfc000000 == 0x14000000: // b
		return jump, pc + imm(0, 26), true
	case w&0xfc000000 == 0x94000000: // bl
		return call, pc + imm(0, 26), true
	case w&0xff000000 == 0x54000000, // b.cond, bc.cond
		w&0x7e000000 == 0x34000000: // cbz, cbnz
		return cond, pc + imm(5, 19), true
	case w&0x7e000000 == 0x36000000: // tbz, tbnz
		return cond, pc + imm(5, 14), true
	}
	return plain, 0, false
}

func (arm64) branchAt(code []byte, pc uint64) (kind, uint64, bool) {
	if len(code) < 4 {
		return plain, 0, false
	}
	return branchARM64(binary.LittleEndian.Uint32(code), pc)
}

// branch decodes branches, exceptions and system instructions. Which of them the kernel
// simulates, steps or refuses is decided in arm_probe_decode_insn of Linux,
// arch/arm64/kernel/probes/decode-insn.c.
func (m arm64) branch(w uint32, pc uint64, in *insn) {
	if kind, target, ok := branchARM64(w, pc); ok {
		in.kind, in.direct, in.target, in.cost = kind, true, target, Emulated
		switch {
		case w&0xff000010 == 0x54000010:
			in.cost = Refused // bc.cond, newer than the kernel's decoder
		case w&0xff00001f == 0x54000000: // b.eq
			in.zero.kind = flagsZero
		case w&0xff000000 == 0xb4000000: // cbz of 64 bits
			in.zero = zeroBranch{regZero, uint8(w & 31)}
		}
		return
	}
	switch {
	case w&0xfe000000 == 0xd6000000:
		// br, blr, ret; the kernel refuses the variants that authenticate.
		in.kind = leave
		switch w >> 21 & 3 {
		case 0:
			in.open = true
		case 1:
			in.calls = true
		case 2:
			in.returns = true
		}
		in.cost = Refused
		if w&0xff9ffc1f == 0xd61f0000 && w>>21&3 != 3 {
			in.cost = Emulated
		}
	case w&0xfffff01f == 0xd503201f:
		m.hint(w, in)
	case w&0xfffff01f == 0xd503301f:
		// Barriers.
	case w&0xfff00000 == 0xd5300000: // mrs
		in.fx.killARM64(w)
	default:
		// svc, brk, msr, sys and similar.
		in.kind, in.cost = unknown, Refused
		in.traps = w&0xffe0001f == 0xd4200000 // brk
	}
}

// hint decodes nop and other hints, by number. The kernel steps those in
// aarch64_insn_is_steppable_hint and refuses the others.
func (m arm64) hint(w uint32, in *insn) {
	in.cost = Refused
	switch n := w >> 5 & 0x7f; n {
	case 0: // nop
		in.hint, in.cost = true, SingleStep
		if m.o.Nops {
			in.cost = Emulated
		}
	case 32, 34, 36, 38: // bti
		in.hint, in.cost = true, SingleStep
	case 8, 10: // pacia1716, pacib1716
		in.cost = SingleStep
		in.fx.killReg(x17)
	case 12, 14: // autia1716, autib1716
		in.fx.killReg(x17)
	case 24, 25, 26, 27: // paciaz, paciasp, pacibz, pacibsp
		in.cost = SingleStep
		in.fx.linkRead, in.fx.linkSet = true, true
	case 7: // xpaclri
		in.cost = SingleStep
		in.fx.linkRead, in.fx.linkSet = true, true
	case 28, 29, 30, 31: // autiaz, autiasp, autibz, autibsp
		in.fx.linkRead, in.fx.linkSet = true, true
	case 1, 2, 3, 4, 5, 16, 17, 18, 20, 22: // yield, wfe, wfi, sev, sevl, esb, psb, tsb, csdb, clrbhb
	default:
		in.kind = unknown
	}
}

func (arm64) text(code []byte, pc uint64) string {
	if len(code) < 4 {
		return "(bad)"
	}
	switch w := binary.LittleEndian.Uint32(code); w {
	case nopA:
		return "nop"
	case 0xd503233f:
		return "paciasp"
	case 0xd503237f:
		return "pacibsp"
	case bti, bti | 1<<6, bti | 2<<6, bti | 3<<6:
		return [...]string{"bti", "bti c", "bti j", "bti jc"}[w>>6&3]
	default:
		x, err := arm64asm.Decode(code)
		if err != nil {
			return fmt.Sprintf(".inst %#08x", w)
		}
		return absoluteARM64(x, pc)
	}
}

// absoluteARM64 is arm64asm.GNUSyntax with addresses instead of distances.
func absoluteARM64(x arm64asm.Inst, pc uint64) string {
	s := arm64asm.GNUSyntax(x)
	for _, a := range x.Args {
		if _, ok := a.(arm64asm.PCRel); !ok {
			continue
		}
		if i := strings.LastIndex(s, " ."); i >= 0 {
			from := pc
			if x.Op == arm64asm.ADRP {
				from &^= 0xfff
			}
			s = fmt.Sprintf("%s %#x", s[:i], from+uint64(a.(arm64asm.PCRel)))
		}
	}
	return s
}
