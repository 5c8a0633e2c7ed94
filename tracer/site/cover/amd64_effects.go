package cover

import "golang.org/x/arch/x86/x86asm"

// effects translates instructions that are not branches. It reports false for those that it does
// not know.
//
// Package site has a table of its own, which answers another question: which registers still hold
// arguments in straight code. Here an instruction is a list of effects on values that can be
// followed forwards and backwards. They share the decoder and what the kernel emulates.
func (d decoder) effects() bool {
	x := d.inst
	a, b := x.Args[0], x.Args[1]
	switch x.Op {
	case x86asm.NOP, x86asm.PAUSE, x86asm.LFENCE, x86asm.MFENCE, x86asm.SFENCE, x86asm.PREFETCHT0,
		x86asm.PREFETCHT1, x86asm.PREFETCHT2, x86asm.PREFETCHNTA, x86asm.PREFETCHW:
		return true
	case x86asm.MOV:
		return d.mov(a, b)
	case x86asm.PUSH, x86asm.POP, x86asm.LEAVE:
		return d.stack()
	case x86asm.LEA:
		return d.lea(a, b)
	case x86asm.ADD, x86asm.SUB:
		return d.add2(a, b)
	case x86asm.TEST, x86asm.CMP:
		test, with := d.tested(a, b)
		d.insn.flags = flagEffect{changes: true, test: test, with: with}
		d.uses0(b)
		return true
	case x86asm.XOR:
		return d.xor(a, b)
	case x86asm.AND:
		return d.and(a, b)
	case x86asm.MUL, x86asm.IMUL:
		return d.mul(a, b)
	case x86asm.XCHG, x86asm.XADD, x86asm.CMPXCHG:
		return d.exchange(a, b)
	case x86asm.SYSCALL:
		for _, r := range amd64Args {
			d.add(effect{kind: use, a: reg(r)})
		}
		d.insn.flags.changes = true
		d.add(effect{dst: operand{kind: far}}, effect{dst: reg(rax)}, effect{dst: reg(rcx)}, effect{dst: reg(11)})
		return true
	case x86asm.DIV, x86asm.IDIV:
		d.insn.flags.changes = true
		d.add(effect{dst: reg(rax)}, effect{dst: reg(rdx)})
		return true
	case x86asm.CBW, x86asm.CWDE, x86asm.CDQE:
		d.add(effect{dst: reg(rax)})
		return true
	case x86asm.CWD, x86asm.CDQ, x86asm.CQO:
		d.add(effect{dst: reg(rdx)})
		return true
	case x86asm.STOSB, x86asm.STOSD, x86asm.STOSQ, x86asm.MOVSB, x86asm.MOVSD, x86asm.MOVSQ:
		return d.block()
	case x86asm.BT, x86asm.COMISD, x86asm.COMISS, x86asm.UCOMISD, x86asm.UCOMISS, x86asm.PTEST:
		d.insn.flags.changes = true
		return true
	}
	flags, known := resultX86(x.Op)
	if !known {
		return false
	}
	d.uses()
	d.writes(a)
	if flags {
		d.insn.flags.changes = true
		if o := d.operand(a); o.kind == register && shows(x.Op) {
			d.insn.flags.test = o
		}
	}
	return true
}

// shows reports whether the flags after op always show whether its result is zero.
func shows(op x86asm.Op) bool {
	switch op {
	case x86asm.OR, x86asm.INC, x86asm.DEC, x86asm.NEG, x86asm.ADC, x86asm.SBB:
		return true
	}
	return false
}

func (d decoder) uses0(args ...x86asm.Arg) {
	for _, a := range args {
		if o := d.operand(a); o.kind == register {
			d.add(effect{kind: use, a: o})
		}
	}
}

// tested returns the register that test or cmp compares with a number, and the number.
func (d decoder) tested(a, b x86asm.Arg) (operand, int64) {
	o := d.operand(a)
	if o.kind != register && o.kind != low {
		return operand{}, 0
	}
	if d.inst.Op == x86asm.TEST && a == b {
		return o, 0
	}
	if n, ok := b.(x86asm.Imm); ok && d.inst.Op == x86asm.CMP {
		return o, int64(n)
	}
	return operand{}, 0
}

func (d decoder) mov(a, b x86asm.Arg) bool {
	dst, src := d.operand(a), d.operand(b)
	if src.kind == nothing || dst.kind == nothing {
		return false // segments and control registers
	}
	switch dst.kind {
	case part:
		d.uses()
		d.writes(a)
		return true
	case low:
		dst = reg(dst.reg)
		src.disp = int64(uint32(src.disp))
		if src.kind != constant && src.kind != low {
			src = operand{}
		}
	case memory, far:
		if src.kind == part || src.kind == low {
			src = operand{}
		}
	}
	if src.kind == memory && src.size != 8 || src.kind == far || src.kind == part {
		src = operand{}
	}
	d.add(effect{dst: dst, a: src})
	return true
}

func (d decoder) stack() bool {
	x := d.inst
	if x.DataSize == 16 {
		return false
	}
	down := effect{kind: address, dst: reg(rsp), a: operand{kind: memory, reg: rsp, disp: -8}}
	up := effect{kind: address, dst: reg(rsp), a: operand{kind: memory, reg: rsp, disp: 8}}
	top := operand{kind: memory, reg: rsp, size: 8}
	switch x.Op {
	case x86asm.PUSH:
		src := d.operand(x.Args[0])
		if src.kind != register && src.kind != constant {
			src = operand{}
		}
		if src.reg == rsp && src.kind == register {
			return false
		}
		d.add(down, effect{dst: top, a: src})
	case x86asm.POP:
		dst := d.operand(x.Args[0])
		if dst.kind != register || dst.reg == rsp {
			return false
		}
		d.add(effect{dst: dst, a: top}, up)
	default: // leave
		d.add(effect{dst: reg(rsp), a: reg(rbp)}, effect{dst: reg(rbp), a: top}, up)
	}
	return true
}

func (d decoder) lea(a, b x86asm.Arg) bool {
	dst, src := d.operand(a), d.operand(b)
	if dst.kind != register {
		d.uses()
		d.writes(a)
		return true
	}
	m := b.(x86asm.Mem)
	if i := registerX86(m.Index); m.Index != 0 && i.kind == register {
		d.add(effect{kind: use, a: i})
	}
	if src.kind != memory {
		d.add(effect{dst: dst})
		return true
	}
	d.add(effect{kind: address, dst: dst, a: src})
	return true
}

// add2 translates add and sub. With a constant, they move the stack pointer and other addresses.
func (d decoder) add2(a, b x86asm.Arg) bool {
	dst, src := d.operand(a), d.operand(b)
	d.insn.flags = flagEffect{changes: true}
	if dst.kind == register && src.kind == constant {
		n := src.disp
		if d.inst.Op == x86asm.SUB {
			n = -n
		}
		d.add(effect{kind: address, dst: dst, a: operand{kind: memory, reg: dst.reg, disp: n}})
	} else {
		d.uses()
		d.writes(a)
	}
	if (dst.kind == register || dst.kind == low) && dst.reg != rsp {
		d.insn.flags.test = dst
	}
	return true
}

func (d decoder) xor(a, b x86asm.Arg) bool {
	o := d.operand(a)
	d.insn.flags.changes = true
	if a == b && (o.kind == register || o.kind == low) && o.reg != rsp {
		d.add(effect{dst: reg(o.reg), a: operand{kind: constant}})
	} else {
		d.uses()
		d.writes(a)
	}
	d.insn.flags.test = o
	return true
}

// and translates and. With a constant, the result may be known.
func (d decoder) and(a, b x86asm.Arg) bool {
	dst, src := d.operand(a), d.operand(b)
	d.insn.flags = flagEffect{changes: true, test: dst}
	d.uses()
	if src.kind != constant || dst.kind != register && dst.kind != low || dst.reg == rsp {
		d.writes(a)
		return true
	}
	if dst.kind == low {
		src.disp = int64(uint32(src.disp))
	}
	d.add(effect{kind: mask, dst: reg(dst.reg), a: dst, b: src})
	return true
}

// mul translates products. The upper half, in rdx, is not tracked.
func (d decoder) mul(a, b x86asm.Arg) bool {
	d.insn.flags.changes = true
	o := d.operand(a)
	switch {
	case b == nil:
		if o.kind != register && (o.kind != memory || o.size != 8) {
			o = operand{}
		}
		d.add(effect{kind: multiply, dst: reg(rax), a: reg(rax), b: o}, effect{dst: reg(rdx)})
	case d.inst.Args[2] == nil && o.kind == register:
		src := d.operand(b)
		if src.kind != register && (src.kind != memory || src.size != 8) {
			src = operand{}
		}
		d.uses0(b)
		d.add(effect{kind: multiply, dst: o, a: o, b: src})
	default:
		d.uses()
		d.writes(a)
	}
	return true
}

func (d decoder) exchange(a, b x86asm.Arg) bool {
	if d.inst.Op == x86asm.XCHG && a == b {
		return true // a nop of two bytes
	}
	d.uses()
	d.writes(a)
	if d.inst.Op != x86asm.CMPXCHG {
		d.writes(b)
	}
	if d.inst.Op != x86asm.XCHG {
		d.insn.flags.changes = true
		if d.inst.Op == x86asm.CMPXCHG {
			d.add(effect{dst: reg(rax)})
		}
	}
	return true
}

// block translates string operations. They store through rdi to an unknown address; inside the
// frame they may store anywhere.
func (d decoder) block() bool {
	d.add(effect{kind: use, a: reg(rdi)}, effect{dst: operand{kind: memory, reg: rdi, index: true}})
	d.add(effect{dst: reg(rdi)}, effect{dst: reg(rcx)})
	switch d.inst.Op {
	case x86asm.MOVSB, x86asm.MOVSD, x86asm.MOVSQ:
		d.add(effect{dst: reg(rsi)})
	}
	return true
}

// resultX86 reports whether an instruction's only effects are on its first operand and perhaps on
// the flags.
func resultX86(op x86asm.Op) (flags, known bool) {
	switch op {
	case x86asm.ADC, x86asm.SBB, x86asm.OR, x86asm.INC, x86asm.DEC, x86asm.NEG,
		x86asm.SHL, x86asm.SHR, x86asm.SAR, x86asm.ROL, x86asm.ROR, x86asm.RCL, x86asm.RCR,
		x86asm.SHLD, x86asm.SHRD, x86asm.BSF, x86asm.BSR, x86asm.LZCNT, x86asm.TZCNT,
		x86asm.POPCNT, x86asm.BTS, x86asm.BTR, x86asm.BTC:
		return true, true
	case x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.MOVNTI, x86asm.NOT, x86asm.BSWAP,
		x86asm.CMOVA, x86asm.CMOVAE, x86asm.CMOVB, x86asm.CMOVBE, x86asm.CMOVE, x86asm.CMOVG,
		x86asm.CMOVGE, x86asm.CMOVL, x86asm.CMOVLE, x86asm.CMOVNE, x86asm.CMOVNO,
		x86asm.CMOVNP, x86asm.CMOVNS, x86asm.CMOVO, x86asm.CMOVP, x86asm.CMOVS,
		x86asm.SETA, x86asm.SETAE, x86asm.SETB, x86asm.SETBE, x86asm.SETE, x86asm.SETG,
		x86asm.SETGE, x86asm.SETL, x86asm.SETLE, x86asm.SETNE, x86asm.SETNO, x86asm.SETNP,
		x86asm.SETNS, x86asm.SETO, x86asm.SETP, x86asm.SETS,
		x86asm.MOVD, x86asm.MOVQ, x86asm.MOVAPD, x86asm.MOVAPS, x86asm.MOVUPD, x86asm.MOVUPS,
		x86asm.MOVDQA, x86asm.MOVDQU, x86asm.MOVSS, x86asm.MOVSD_XMM, x86asm.MOVHPD,
		x86asm.MOVHPS, x86asm.MOVLPD, x86asm.MOVLPS, x86asm.MOVHLPS, x86asm.MOVLHPS,
		x86asm.PXOR, x86asm.XORPD, x86asm.XORPS, x86asm.PUNPCKLQDQ, x86asm.PUNPCKLBW,
		x86asm.PUNPCKLWD, x86asm.PSHUFD, x86asm.CVTSI2SD, x86asm.CVTSI2SS, x86asm.CVTTSD2SI,
		x86asm.CVTTSS2SI, x86asm.ADDSD, x86asm.ADDSS, x86asm.SUBSD, x86asm.SUBSS, x86asm.MULSD,
		x86asm.MULSS, x86asm.DIVSD, x86asm.DIVSS, x86asm.PADDQ, x86asm.PADDD, x86asm.POR,
		x86asm.PAND, x86asm.PSRLDQ, x86asm.SHUFPS, x86asm.UNPCKLPS, x86asm.UNPCKLPD:
		return false, true
	}
	return false, false
}
