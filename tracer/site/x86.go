package site

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// x86 decodes x86 code of 64 or 32 bits.
type x86 struct {
	o    Options
	bits int // width of addresses and general registers
}

// Register numbers of the machine, with the names in 64-bit code.
const (
	rax = 0
	rdx = 2
	rbx = 3
	rsp = 4
	rbp = 5
)

// amd64Args are rdi, rsi, rdx, rcx, r8 and r9: System V ABI, AMD64
// supplement, 3.2.3.
var amd64Args = []uint8{7, 6, 2, 1, 8, 9}

// i386Args are words of the stack: System V ABI, Intel386 supplement, 3-10.
var i386Args = []uint8{
	StackWord, StackWord + 1, StackWord + 2, StackWord + 3,
	StackWord + 4, StackWord + 5, StackWord + 6, StackWord + 7,
}

func (x86) result() uint8 { return rax }
func (x86) frame() uint8  { return rbp }
func (x86) step() int     { return 1 }

func (m x86) arguments() []uint8 {
	if m.bits == 32 {
		return i386Args
	}
	return amd64Args
}

func (m x86) readable() uint32 {
	if m.bits == 32 {
		return 0xff&^(1<<rsp) | stackWords
	}
	return 0xffff &^ (1 << rsp)
}

// word is the size of a general register in bytes.
func (m x86) word() int { return m.bits / 8 }

// addr truncates an address to the width of the instruction pointer.
func (m x86) addr(a uint64) uint64 {
	if m.bits == 32 {
		return uint64(uint32(a))
	}
	return a
}

// landingPad returns the name of the landing pad of indirect branches at the start of code, if
// there is one: x86asm does not decode them. The one of the other mode is a nop.
func landingPad(code []byte) (string, bool) {
	if len(code) < 4 {
		return "", false
	}
	switch binary.LittleEndian.Uint32(code) {
	case 0xfa1e0ff3:
		return "endbr64", true
	case 0xfb1e0ff3:
		return "endbr32", true
	}
	return "", false
}

func (m x86) decode(code []byte, pc uint64) insn {
	if _, ok := landingPad(code); ok {
		return insn{size: 4, cost: SingleStep, hint: true}
	}
	if n := vexLength(code, m.bits); n != 0 {
		if vexPlain(code, m.bits) {
			return insn{size: n, cost: Refused}
		}
		return insn{size: n, kind: unknown, cost: Refused}
	}
	x, ok := m.inst(code)
	if !ok {
		return insn{}
	}
	in := insn{size: x.Len, cost: m.cost(code[:x.Len], pc)}
	switch op := x.Op; {
	case op == x86asm.JMP || op == x86asm.CALL:
		in.kind = jump
		if op == x86asm.CALL {
			in.kind = call
		}
		switch a := x.Args[0].(type) {
		case x86asm.Rel:
			in.direct, in.target = true, m.relative(&x, a, pc)
		case x86asm.Mem:
			in.slot = m.slot(a, pc+uint64(x.Len))
		}
		if op == x86asm.JMP && !in.direct {
			in.kind, in.open = leave, true
		}
	case isCondX86(op):
		in.kind = cond
		if a, ok := x.Args[0].(x86asm.Rel); ok {
			in.direct, in.target = true, m.relative(&x, a, pc)
		}
		if op == x86asm.JE {
			in.zero.kind = flagsZero
		}
	case op == x86asm.RET:
		in.kind, in.returns = leave, true
	case op == x86asm.UD2 || op == x86asm.HLT:
		in.kind, in.traps = leave, true
	case op == x86asm.NOP:
		in.hint = true
	default:
		in.traps = op == x86asm.INT && code[0] == 0xcc
		in.fx, ok = m.effects(&x)
		if !ok {
			in.kind = unknown
		}
	}
	return in
}

// inst is x86asm.Decode without two peculiarities: x86asm reports prefixes before something
// unknown as an instruction, and may read beyond the end.
func (m x86) inst(code []byte) (x86asm.Inst, bool) {
	x, err := x86asm.Decode(code, m.bits)
	if err != nil || x.Op == 0 || x.Len <= 0 || x.Len > len(code) {
		return x86asm.Inst{}, false
	}
	return x, true
}

// relative returns the target of a relative branch. In 32-bit code, a branch with the operand
// size prefix has a target of 16 bits.
func (m x86) relative(x *x86asm.Inst, a x86asm.Rel, pc uint64) uint64 {
	to := m.addr(pc + uint64(x.Len) + uint64(int64(a)))
	if m.bits == 32 && x.DataSize == 16 {
		to &= 0xffff
	}
	return to
}

// slot returns the address of the pointer that a jump through memory reads, or 0 if it is
// unknown. In 32-bit code the slot may be relative to ebx, which then holds the address of the
// GOT: the ABI requires it of code that enters the PLT, and a function that ends in a jump has
// restored its caller's ebx before.
func (m x86) slot(a x86asm.Mem, next uint64) uint64 {
	if a.Index != 0 || a.Segment != 0 {
		return 0
	}
	switch {
	case a.Base == x86asm.RIP && m.bits == 64:
		return next + uint64(a.Disp)
	case a.Base == 0 && m.bits == 32:
		return m.addr(uint64(a.Disp))
	case a.Base == x86asm.EBX && m.bits == 32 && m.o.GOT != 0:
		return m.addr(m.o.GOT + uint64(a.Disp))
	}
	return 0
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

// branchAt recognises only the opcodes of relative branches. With displacements of one byte: 70
// to 7f and e0 to e3, eb. Of four: e8, e9, 0f 80 to 0f 8f.
func (m x86) branchAt(code []byte, pc uint64) (kind, uint64, bool) {
	if len(code) < 2 {
		return plain, 0, false
	}
	c := code[0]
	short := m.addr(pc + 2 + uint64(int64(int8(code[1]))))
	switch {
	case c == 0xeb:
		return jump, short, true
	case c&0xf0 == 0x70 || c&0xfc == 0xe0:
		return cond, short, true
	}
	return m.nearBranch(code, pc)
}

// nearBranch recognises the branches with a displacement of four bytes.
func (m x86) nearBranch(code []byte, pc uint64) (kind, uint64, bool) {
	if len(code) < 5 {
		return plain, 0, false
	}
	rel := func(i int) uint64 {
		return m.addr(pc + uint64(i) + 4 + uint64(int64(int32(binary.LittleEndian.Uint32(code[i:])))))
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

func (m x86) text(code []byte, pc uint64) string {
	if name, ok := landingPad(code); ok {
		return name
	}
	x, ok := m.inst(code)
	if !ok {
		return "(bad)"
	}
	if a, ok := x.Args[0].(x86asm.Rel); ok {
		// x86asm prints distances. Addresses can be compared with a disassembly.
		return fmt.Sprintf("%s %#x", strings.ToLower(x.Op.String()), m.relative(&x, a, pc))
	}
	// x86asm leaves out the zero of %fs:0x0.
	s := strings.Replace(x86asm.GNUSyntax(x, pc, nil), "s:,", "s:0x0,", 1)
	if strings.HasSuffix(s, "s:") {
		s += "0x0"
	}
	return s
}
