package site

import "golang.org/x/arch/x86/x86asm"

// effects returns the effects of an instruction that is not a branch. It reports false for those
// that it does not model: new ones, system instructions, string operations, and others that
// compilers do not put into prologues.
func (m x86) effects(x *x86asm.Inst) (fx effects, ok bool) {
	for _, p := range x.Prefix {
		switch p &^ (x86asm.PrefixImplicit | x86asm.PrefixIgnored) {
		case x86asm.PrefixREP, x86asm.PrefixREPN, x86asm.PrefixLOCK:
			if p&x86asm.PrefixImplicit == 0 {
				return fx, false
			}
		}
	}
	a, b := x.Args[0], x.Args[1]
	switch x.Op {
	case x86asm.MOV:
		return m.mov(x)
	case x86asm.XCHG:
		return m.xchg(x)
	case x86asm.PUSH, x86asm.POP:
		return m.stack(x)
	case x86asm.ADD, x86asm.SUB:
		fx.flags = true
		if r, is := m.gpr(a); is && r == rsp {
			n, is := b.(x86asm.Imm)
			if !is {
				return fx, false
			}
			fx.stack = int(int32(n))
			if x.Op == x86asm.ADD {
				fx.stack = -fx.stack
			}
			return fx, true
		}
		return fx, m.writes(&fx, x, a)
	case x86asm.LEA:
		return m.lea(x)
	case x86asm.TEST, x86asm.CMP:
		fx.flags = true
		r, is := m.operand(&fx, x, a)
		if s, same := b.(x86asm.Reg); x.Op == x86asm.TEST {
			is = is && same && a == s
		} else if n, zero := b.(x86asm.Imm); !zero || n != 0 {
			is = false
		}
		fx.test, fx.testReg = is, r
		return fx, true
	case x86asm.MUL, x86asm.IMUL:
		return m.mul(x)
	case x86asm.BT, x86asm.COMISD, x86asm.COMISS, x86asm.UCOMISD, x86asm.UCOMISS, x86asm.PTEST:
		fx.flags = true
		return fx, true
	case x86asm.ADC, x86asm.SBB, x86asm.AND, x86asm.OR, x86asm.XOR, x86asm.INC, x86asm.DEC,
		x86asm.NEG, x86asm.SHL, x86asm.SHR, x86asm.SAR, x86asm.ROL, x86asm.ROR, x86asm.RCL,
		x86asm.RCR, x86asm.SHLD, x86asm.SHRD, x86asm.BSF, x86asm.BSR, x86asm.LZCNT,
		x86asm.TZCNT, x86asm.POPCNT:
		fx.flags = true
		return fx, m.writes(&fx, x, a)
	case x86asm.BTS, x86asm.BTR, x86asm.BTC:
		fx.flags = true
		ok := m.writes(&fx, x, a)
		if _, far := b.(x86asm.Reg); far && fx.stores {
			// The number of the bit may reach beyond the operand.
			fx.mem, fx.kill = memoryOperand{}, stackWords
		}
		return fx, ok
	case x86asm.DIV, x86asm.IDIV:
		fx.flags = true
		fx.killReg(rax)
		fx.killReg(rdx)
		return fx, true
	case x86asm.CBW, x86asm.CWDE, x86asm.CDQE:
		fx.killReg(rax)
		return fx, true
	case x86asm.CWD, x86asm.CDQ, x86asm.CQO:
		fx.killReg(rdx)
		return fx, true
	case x86asm.PAUSE, x86asm.LFENCE, x86asm.MFENCE, x86asm.SFENCE, x86asm.PREFETCHT0,
		x86asm.PREFETCHT1, x86asm.PREFETCHT2, x86asm.PREFETCHNTA, x86asm.PREFETCHW:
		return fx, true
	}
	if writesFirstX86(x.Op) {
		return fx, m.writes(&fx, x, a)
	}
	return fx, false
}

// mov models mov. Moves of less than a word do not keep the whole value.
func (m x86) mov(x *x86asm.Inst) (fx effects, ok bool) {
	d, whole := m.operand(&fx, x, x.Args[0])
	s, from := m.operand(&fx, x, x.Args[1])
	if whole && from && d != rsp {
		fx.stores = d == inMemory
		fx.set(copyOf, d, s, s)
		return fx, true
	}
	if r, is := x.Args[0].(x86asm.Reg); is && isVectorX86(r) {
		return fx, false // mov has no vector form: a wrong decode
	}
	return fx, m.writes(&fx, x, x.Args[0])
}

func (m x86) xchg(x *x86asm.Inst) (fx effects, ok bool) {
	d, whole := m.gpr(x.Args[0])
	s, both := m.gpr(x.Args[1])
	if whole && both && d != rsp && s != rsp {
		fx.set(copyOf, d, s, s)
		fx.set(copyOf, s, d, d)
		return fx, true
	}
	return fx, m.writes(&fx, x, x.Args[0]) && m.writes(&fx, x, x.Args[1])
}

// lea models lea. In 32-bit code it computes addresses of the stack, and serves as nops of
// several lengths: lea 0(%esi),%esi.
func (m x86) lea(x *x86asm.Inst) (fx effects, ok bool) {
	d, whole := m.gpr(x.Args[0])
	src, is := x.Args[1].(x86asm.Mem)
	if !whole || !is {
		return fx, m.writes(&fx, x, x.Args[0])
	}
	base, width, ok := gprX86(src.Base)
	if d == rsp && ok && base == rsp && width == m.word() && src.Index == 0 {
		fx.stack = -int(int32(src.Disp))
		return fx, true
	}
	// A segment's base is not added.
	src.Segment = 0
	if o := m.indirect(src, m.word()); o.known && d != rsp {
		fx.mem = o
		fx.set(addressOf, d, base, base)
		return fx, true
	}
	return fx, m.writes(&fx, x, x.Args[0])
}

// stack models push and pop. With the operand size prefix, which nobody uses, they move the stack
// pointer by two.
func (m x86) stack(x *x86asm.Inst) (fx effects, ok bool) {
	if x.DataSize == 16 {
		return fx, false
	}
	if x.Op == x86asm.PUSH {
		fx.stack = m.word()
		return fx, true
	}
	fx.stack = -m.word()
	if _, is := x.Args[0].(x86asm.Mem); is && m.bits == 32 {
		// The address is computed after the pop.
		fx.stores = true
		fx.kill |= stackWords
		return fx, true
	}
	return fx, m.writes(&fx, x, x.Args[0])
}

// mul models products. Only the product of two whole words can be that of two arguments; the
// upper half, in rdx, is not tracked.
func (m x86) mul(x *x86asm.Inst) (fx effects, ok bool) {
	fx.flags = true
	switch {
	case x.Args[1] == nil:
		if a, whole := m.operand(&fx, x, x.Args[0]); whole {
			fx.set(productOf, rax, rax, a)
		}
		fx.killReg(rax)
		fx.killReg(rdx)
		return fx, true
	case x.Args[2] == nil:
		a, whole := m.gpr(x.Args[0])
		b, from := m.operand(&fx, x, x.Args[1])
		if whole && from && a != rsp {
			fx.set(productOf, a, a, b)
			return fx, true
		}
	}
	return fx, m.writes(&fx, x, x.Args[0])
}

// writesFirstX86 lists the instructions that change only their first operand, and not the flags.
// The result of a comparison of vectors is a vector.
func writesFirstX86(op x86asm.Op) bool {
	switch op {
	case x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.MOVBE, x86asm.MOVNTI, x86asm.NOT,
		x86asm.BSWAP,
		x86asm.CMOVA, x86asm.CMOVAE, x86asm.CMOVB, x86asm.CMOVBE, x86asm.CMOVE, x86asm.CMOVG,
		x86asm.CMOVGE, x86asm.CMOVL, x86asm.CMOVLE, x86asm.CMOVNE, x86asm.CMOVNO,
		x86asm.CMOVNP, x86asm.CMOVNS, x86asm.CMOVO, x86asm.CMOVP, x86asm.CMOVS,
		x86asm.SETA, x86asm.SETAE, x86asm.SETB, x86asm.SETBE, x86asm.SETE, x86asm.SETG,
		x86asm.SETGE, x86asm.SETL, x86asm.SETLE, x86asm.SETNE, x86asm.SETNO, x86asm.SETNP,
		x86asm.SETNS, x86asm.SETO, x86asm.SETP, x86asm.SETS,
		x86asm.MOVD, x86asm.MOVQ, x86asm.MOVAPD, x86asm.MOVAPS, x86asm.MOVUPD, x86asm.MOVUPS,
		x86asm.MOVDQA, x86asm.MOVDQU, x86asm.MOVSS, x86asm.MOVSD_XMM, x86asm.MOVHPD,
		x86asm.MOVHPS, x86asm.MOVLPD, x86asm.MOVLPS, x86asm.MOVHLPS, x86asm.MOVLHPS,
		x86asm.PXOR, x86asm.XORPD, x86asm.XORPS, x86asm.PUNPCKLQDQ, x86asm.PUNPCKLBW, x86asm.PUNPCKLWD,
		x86asm.PSHUFD, x86asm.CVTSI2SD,
		x86asm.CVTSI2SS, x86asm.CVTTSD2SI, x86asm.CVTTSS2SI:
		return true
	}
	return false
}
