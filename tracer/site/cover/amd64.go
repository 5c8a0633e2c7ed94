package cover

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"

	"rtrace-bpf/tracer/site"
)

// amd64 decodes x86-64 code of the System V ABI.
type amd64 struct{}

// Numbers of registers.
const (
	rax location = 0
	rcx location = 1
	rdx location = 2
	rsp location = 4
	rbp location = 5
	rsi location = 6
	rdi location = 7
)

var amd64Args = []location{rdi, rsi, rdx, rcx, 8, 9}

func (amd64) arguments() []location  { return amd64Args }
func (amd64) result() location       { return rax }
func (amd64) stackPointer() location { return rsp }
func (amd64) framePointer() location { return rbp }
func (amd64) clobbered() locationSet { return setOf(rax, rcx, rdx, rsi, rdi, 8, 9, 10, 11) }
func (amd64) passed() locationSet    { return amd64{}.clobbered() }
func (amd64) readable() locationSet  { return locationSet{0xffff &^ (1 << rsp)} }
func (amd64) link() location         { return nowhere }

// landingPads are not decoded by x86asm: endbr64 and endbr32.
var landingPads = [][]byte{{0xf3, 0x0f, 0x1e, 0xfa}, {0xf3, 0x0f, 0x1e, 0xfb}}

func (m amd64) decode(code []byte, pc uint64) insn {
	for _, pad := range landingPads {
		if bytes.HasPrefix(code, pad) {
			return insn{size: len(pad)}
		}
	}
	cost, size := site.Options{Arch: site.AMD64}.Cost(code, pc)
	x, err := x86asm.Decode(code[:min(len(code), 15)], 64)
	if size == 0 || err != nil || x.Op == 0 || x.Len != size {
		return insn{size: size, stopped: "unknown instruction"}
	}
	in := insn{size: size, cost: cost}
	d := decoder{inst: &x, insn: &in, code: code, pc: pc}
	if !d.flow() && !d.effects() {
		in.stopped = "its effects are not known"
	}
	return in
}

// decoder translates an instruction.
type decoder struct {
	inst *x86asm.Inst
	insn *insn
	code []byte
	pc   uint64
}

// flow translates branches. It reports false for other instructions.
func (d decoder) flow() bool {
	x, in := d.inst, d.insn
	target := func() (uint64, bool) {
		rel, ok := x.Args[0].(x86asm.Rel)
		return d.pc + uint64(x.Len) + uint64(int64(rel)), ok
	}
	switch op := x.Op; op {
	case x86asm.RET:
		in.flow = ret
		if x.Args[0] != nil {
			in.stopped = "it removes arguments from the stack"
		}
	case x86asm.UD2, x86asm.HLT:
		in.flow = halt
	case x86asm.CALL:
		in.flow = call
		in.target, _ = target()
		if _, ok := x.Args[0].(x86asm.Rel); !ok {
			in.target = 0
			d.uses()
		}
	case x86asm.JMP:
		in.flow = jump
		to, ok := target()
		in.target = to
		if !ok {
			in.flow, in.target = indirect, 0
			if m, is := x.Args[0].(x86asm.Mem); is && m.Base == x86asm.RIP && m.Index == 0 {
				in.slot = d.pc + uint64(x.Len) + uint64(m.Disp)
			}
		}
	default:
		return d.branch(target)
	}
	return true
}

// branch translates conditional jumps.
func (d decoder) branch(target func() (uint64, bool)) bool {
	to, ok := target()
	opcode := d.code[0]
	if opcode == 0x0f && len(d.code) > 1 {
		opcode = d.code[1] - 0x10
	}
	if !ok || opcode&0xf0 != 0x70 {
		return false
	}
	in := d.insn
	in.flow, in.target = branch, to
	in.when = Condition{Kind: Flags, Code: opcode & 0xf}
	if in.when.Code>>1 == 2 { // je, jne
		in.equal, in.not = true, in.when.Code&1 == 1
	}
	return true
}

// operand translates an operand.
func (d decoder) operand(a x86asm.Arg) operand {
	switch a := a.(type) {
	case x86asm.Reg:
		return registerX86(a)
	case x86asm.Imm:
		return operand{kind: constant, disp: int64(a)}
	case x86asm.Mem:
		o := operand{kind: far, size: d.inst.MemBytes, disp: a.Disp}
		base := registerX86(a.Base)
		if base.kind == register && a.Segment != x86asm.FS && a.Segment != x86asm.GS {
			o.kind, o.reg, o.index = memory, base.reg, a.Index != 0
		}
		return o
	}
	return operand{}
}

// registerX86 translates a register; vectors are nothing.
func registerX86(r x86asm.Reg) operand {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return reg(location(r - x86asm.RAX))
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return operand{kind: low, reg: location(r - x86asm.EAX)}
	case r >= x86asm.AX && r <= x86asm.R15W:
		return operand{kind: part, reg: location(r - x86asm.AX)}
	case r >= x86asm.AL && r <= x86asm.BL:
		return operand{kind: part, reg: location(r - x86asm.AL)}
	case r >= x86asm.AH && r <= x86asm.BH:
		return operand{kind: part, reg: location(r - x86asm.AH)}
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return operand{kind: part, reg: location(r-x86asm.SPB) + 4}
	}
	return operand{}
}

func (d decoder) add(e ...effect) { d.insn.effects = append(d.insn.effects, e...) }

// uses records that the values of all operands may go anywhere, except as addresses.
func (d decoder) uses() {
	for _, a := range d.inst.Args {
		if o := d.operand(a); o.kind == register || o.kind == low || o.kind == part {
			d.add(effect{kind: use, a: reg(o.reg)})
		}
		if m, ok := a.(x86asm.Mem); ok && m.Index != 0 {
			if i := registerX86(m.Index); i.kind == register {
				d.add(effect{kind: use, a: i})
			}
			if b := registerX86(m.Base); b.kind == register {
				d.add(effect{kind: use, a: b})
			}
		}
	}
}

// writes records that an operand gets an unknown value. A write of four bytes clears the others,
// and a smaller one changes only a part.
func (d decoder) writes(a x86asm.Arg) {
	o := d.operand(a)
	if o.kind == low {
		o = reg(o.reg)
	}
	if o.kind != nothing {
		d.add(effect{dst: o})
	}
}
