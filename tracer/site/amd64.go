package site

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// amd64 decodes x86-64 code.
type amd64 struct{ o Options }

// Registers as the machine numbers them.
const (
	rax = 0
	rdx = 2
	rsp = 4
	rbp = 5
)

// amd64Args are rdi, rsi, rdx, rcx, r8 and r9: System V ABI, AMD64
// supplement, 3.2.3.
var amd64Args = []uint8{7, 6, 2, 1, 8, 9}

func (amd64) arguments() []uint8 { return amd64Args }
func (amd64) result() uint8      { return rax }
func (amd64) readable() uint32   { return 0xffff &^ (1 << rsp) }
func (amd64) frame() uint8       { return rbp }
func (amd64) step() int          { return 1 }

// isEndbr64 recognises the landing pad of indirect branches, which x86asm
// does not decode.
func isEndbr64(code []byte) bool {
	return len(code) >= 4 && binary.LittleEndian.Uint32(code) == 0xfa1e0ff3
}

func (m amd64) decode(code []byte, pc uint64) insn {
	if isEndbr64(code) {
		return insn{size: 4, cost: SingleStep, hint: true}
	}
	if n := vexLength(code); n != 0 {
		return insn{size: n, kind: unknown, cost: Refused}
	}
	x, ok := decodeX86(code)
	if !ok {
		return insn{}
	}
	in := insn{size: x.Len, cost: m.cost(code[:x.Len], pc)}
	next := pc + uint64(x.Len)
	switch op := x.Op; {
	case op == x86asm.JMP || op == x86asm.CALL:
		in.kind = jump
		if op == x86asm.CALL {
			in.kind = call
		}
		switch a := x.Args[0].(type) {
		case x86asm.Rel:
			in.direct, in.target = true, next+uint64(int64(a))
		case x86asm.Mem:
			if a.Base == x86asm.RIP && a.Index == 0 && a.Segment == 0 {
				in.slot = next + uint64(a.Disp)
			}
		}
		if op == x86asm.JMP && !in.direct {
			in.kind = leave
		}
	case isCondX86(op):
		in.kind = cond
		if a, ok := x.Args[0].(x86asm.Rel); ok {
			in.direct, in.target = true, next+uint64(int64(a))
		}
		if op == x86asm.JE {
			in.zero.kind = flagsZero
		}
	case op == x86asm.RET || op == x86asm.UD2 || op == x86asm.HLT:
		in.kind = leave
	case op == x86asm.NOP:
		in.hint = true
	default:
		in.fx, ok = effectsX86(&x)
		if !ok {
			in.kind = unknown
		}
	}
	return in
}

// decodeX86 is x86asm.Decode without its peculiarities: it reports prefixes in
// front of something unknown as an instruction, and it may look beyond the end.
func decodeX86(code []byte) (x86asm.Inst, bool) {
	x, err := x86asm.Decode(code, 64)
	if err != nil || x.Op == 0 || x.Len <= 0 || x.Len > len(code) {
		return x86asm.Inst{}, false
	}
	return x, true
}

func isCondX86(op x86asm.Op) bool {
	switch op {
	case x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JE, x86asm.JNE,
		x86asm.JG, x86asm.JGE, x86asm.JL, x86asm.JLE, x86asm.JNO, x86asm.JNP,
		x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JS,
		x86asm.JRCXZ, x86asm.JECXZ, x86asm.JCXZ,
		x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE:
		return true
	}
	return false
}

// cost follows the functions uprobe_init_insn, branch_setup_xol_ops and
// push_setup_xol_ops of Linux, arch/x86/kernel/uprobes.c, from 5.10 to 6.18.
// code is exactly one instruction.
func (m amd64) cost(code []byte, pc uint64) Cost {
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
	if i < len(code) && code[i]&0xf0 == 0x40 {
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
	if refusedX86(code[i:]) {
		return Refused
	}
	return SingleStep
}

// branchCost is that of relative jumps and calls. With an operand size prefix
// processors disagree about them.
func branchCost(data16 bool) Cost {
	if data16 {
		return Refused
	}
	return Emulated
}

// nopCost is that of opcode 90. With REX.B it is an exchange with r8, which
// kernels that look at the opcode alone skip like a nop. With f3 it is pause.
// With 66 kernels before 6.2 refuse it.
func (m amd64) nopCost(data16, rep bool, rex byte) Cost {
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

// twoByteCost is that of opcodes 0f xx; code[i] is xx.
func (m amd64) twoByteCost(code []byte, i int, data16 bool, pc uint64) Cost {
	switch c := code[i]; {
	case c >= 0x80 && c <= 0x8f:
		return branchCost(data16)
	case c == 0x1f:
		// The kernel's list has one encoding of each length.
		if m.o.Nop5 && string(code) == "\x0f\x1f\x44\x00\x00" && pc&0xfff <= 0x1000-5 {
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

// refusedX86 has the one-byte opcodes of good_insns_64 that compilers could
// generate, and loads of the stack segment.
func refusedX86(code []byte) bool {
	switch c := code[0]; c {
	case 0x6c, 0x6d, 0x6e, 0x6f, 0xcc, 0xcd, 0xce, 0xcf, 0xe4, 0xe5, 0xe6, 0xe7,
		0xec, 0xed, 0xee, 0xef, 0xf1, 0xf4, 0xfa, 0xfb, 0x62:
		return true
	case 0x8e:
		return len(code) > 1 && code[1]>>3&7 == 2
	}
	return false
}

// branchAt knows the opcodes of relative branches only. With displacements of
// a byte: 70 to 7f and e0 to e3, eb. Of four: e8, e9, 0f 80 to 0f 8f.
func (amd64) branchAt(code []byte, pc uint64) (kind, uint64, bool) {
	if len(code) < 2 {
		return plain, 0, false
	}
	c := code[0]
	switch {
	case c == 0xeb:
		return jump, pc + 2 + uint64(int64(int8(code[1]))), true
	case c&0xf0 == 0x70 || c&0xfc == 0xe0:
		return cond, pc + 2 + uint64(int64(int8(code[1]))), true
	}
	return nearBranch(code, pc)
}

// nearBranch reads the branches of x86-64 with a displacement of four bytes.
func nearBranch(code []byte, pc uint64) (kind, uint64, bool) {
	if len(code) < 5 {
		return plain, 0, false
	}
	rel := func(i int) uint64 {
		return pc + uint64(i) + 4 + uint64(int64(int32(binary.LittleEndian.Uint32(code[i:]))))
	}
	switch {
	case code[0] == 0xe8:
		return call, rel(1), true
	case code[0] == 0xe9:
		return jump, rel(1), true
	case code[0] == 0x0f && code[1]&0xf0 == 0x80 && len(code) >= 6:
		return cond, rel(2), true
	}
	return plain, 0, false
}

func (amd64) text(code []byte, pc uint64) string {
	if isEndbr64(code) {
		return "endbr64"
	}
	x, ok := decodeX86(code)
	if !ok {
		return "(bad)"
	}
	if a, ok := x.Args[0].(x86asm.Rel); ok {
		// x86asm prints distances; addresses compare with a disassembly.
		target := pc + uint64(x.Len) + uint64(int64(a))
		return fmt.Sprintf("%s %#x", strings.ToLower(x.Op.String()), target)
	}
	// It leaves out the zero of %fs:0x0.
	return strings.Replace(x86asm.GNUSyntax(x, pc, nil), "s:,", "s:0x0,", 1)
}
