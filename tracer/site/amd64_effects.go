package site

import "golang.org/x/arch/x86/x86asm"

// gprX86 returns the number of the general register that r is, or is a part
// of, and its width in bytes. A zero Reg is none.
func gprX86(r x86asm.Reg) (number uint8, width int, ok bool) {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return uint8(r - x86asm.RAX), 8, true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return uint8(r - x86asm.EAX), 4, true
	case r >= x86asm.AX && r <= x86asm.R15W:
		return uint8(r - x86asm.AX), 2, true
	case r >= x86asm.AL && r <= x86asm.BL:
		return uint8(r - x86asm.AL), 1, true
	case r >= x86asm.AH && r <= x86asm.BH:
		return uint8(r - x86asm.AH), 1, true
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return uint8(r-x86asm.SPB) + 4, 1, true
	}
	return 0, 0, false
}

// gpr64 returns the number of the 64-bit general register that a is.
func gpr64(a x86asm.Arg) (uint8, bool) {
	r, ok := a.(x86asm.Reg)
	if !ok {
		return 0, false
	}
	n, width, ok := gprX86(r)
	return n, ok && width == 8
}

// isVectorX86 reports whether r is a register of the x87, MMX or SSE state,
// which the search does not track.
func isVectorX86(r x86asm.Reg) bool {
	return r >= x86asm.F0 && r <= x86asm.X15
}

// writes adds the effect of a result in a. It reports false for registers of
// the system.
func (fx *effects) writes(a x86asm.Arg) bool {
	switch a := a.(type) {
	case x86asm.Mem:
		fx.stores = true
		return true
	case x86asm.Reg:
		n, _, ok := gprX86(a)
		if !ok {
			return isVectorX86(a)
		}
		if n == rsp {
			fx.stackLost = true
		}
		fx.killReg(n)
		return true
	}
	return false
}

// effectsX86 returns what an instruction does that is not a branch. It reports
// false for those it does not model: new ones, those of the system, string
// operations, and what else compilers do not put into prologues.
func effectsX86(x *x86asm.Inst) (fx effects, ok bool) {
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
		return movX86(a, b)
	case x86asm.XCHG:
		return xchgX86(a, b)
	case x86asm.PUSH, x86asm.POP:
		return stackX86(x)
	case x86asm.ADD, x86asm.SUB:
		fx.flags = true
		if r, is := gpr64(a); is && r == rsp {
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
		return fx, fx.writes(a)
	case x86asm.LEA:
		if r, is := gpr64(a); is && r == rsp {
			if src, is := b.(x86asm.Mem); is && src.Base == x86asm.RSP && src.Index == 0 && x.AddrSize == 64 {
				fx.stack = -int(src.Disp)
				return fx, true
			}
		}
		return fx, fx.writes(a)
	case x86asm.TEST, x86asm.CMP:
		fx.flags = true
		r, is := gpr64(a)
		if s, same := b.(x86asm.Reg); x.Op == x86asm.TEST {
			is = is && same && a == s
		} else if n, zero := b.(x86asm.Imm); !zero || n != 0 {
			is = false
		}
		fx.test, fx.testReg = is, r
		return fx, true
	case x86asm.MUL, x86asm.IMUL:
		return mulX86(x)
	case x86asm.BT, x86asm.COMISD, x86asm.COMISS, x86asm.UCOMISD, x86asm.UCOMISS, x86asm.PTEST:
		fx.flags = true
		return fx, true
	case x86asm.ADC, x86asm.SBB, x86asm.AND, x86asm.OR, x86asm.XOR, x86asm.INC, x86asm.DEC,
		x86asm.NEG, x86asm.SHL, x86asm.SHR, x86asm.SAR, x86asm.ROL, x86asm.ROR, x86asm.RCL,
		x86asm.RCR, x86asm.SHLD, x86asm.SHRD, x86asm.BSF, x86asm.BSR, x86asm.LZCNT,
		x86asm.TZCNT, x86asm.POPCNT, x86asm.BTS, x86asm.BTR, x86asm.BTC:
		fx.flags = true
		return fx, fx.writes(a)
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
		return fx, fx.writes(a)
	}
	return fx, false
}

// movX86 handles mov. Moves to 32 bits and less do not keep the whole value.
func movX86(dst, src x86asm.Arg) (fx effects, ok bool) {
	d, wide := gpr64(dst)
	s, from := gpr64(src)
	if wide && from && d != rsp {
		fx.set(copyOf, d, s, s)
		return fx, true
	}
	if r, is := dst.(x86asm.Reg); is && isVectorX86(r) {
		return fx, false // mov has no vector form: a wrong decode
	}
	return fx, fx.writes(dst)
}

func xchgX86(a, b x86asm.Arg) (fx effects, ok bool) {
	d, wide := gpr64(a)
	s, both := gpr64(b)
	if wide && both && d != rsp && s != rsp {
		fx.set(copyOf, d, s, s)
		fx.set(copyOf, s, d, d)
		return fx, true
	}
	return fx, fx.writes(a) && fx.writes(b)
}

// stackX86 handles push and pop. With the operand size prefix, which nobody
// uses, they move the stack pointer by two.
func stackX86(x *x86asm.Inst) (fx effects, ok bool) {
	if x.DataSize == 16 {
		return fx, false
	}
	if x.Op == x86asm.PUSH {
		fx.stack = 8
		return fx, true
	}
	fx.stack = -8
	return fx, fx.writes(x.Args[0])
}

// mulX86 handles products. Only of 64 bits and two registers they can be that
// of two arguments; the upper half, in rdx, is of no use.
func mulX86(x *x86asm.Inst) (fx effects, ok bool) {
	fx.flags = true
	a, wide := gpr64(x.Args[0])
	switch {
	case x.Args[1] == nil:
		if wide {
			fx.set(productOf, rax, rax, a)
		}
		fx.killReg(rax)
		fx.killReg(rdx)
		return fx, true
	case x.Args[2] == nil && wide && a != rsp:
		if b, is := gpr64(x.Args[1]); is {
			fx.set(productOf, a, a, b)
			return fx, true
		}
	}
	return fx, fx.writes(x.Args[0])
}

// writesFirstX86 has the instructions that change their first operand only,
// and not the flags. Of a comparison of vectors the result is a vector.
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
		x86asm.PXOR, x86asm.XORPD, x86asm.XORPS, x86asm.PUNPCKLQDQ, x86asm.CVTSI2SD,
		x86asm.CVTSI2SS, x86asm.CVTTSD2SI, x86asm.CVTTSS2SI:
		return true
	}
	return false
}
