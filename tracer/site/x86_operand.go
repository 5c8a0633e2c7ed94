package site

import "golang.org/x/arch/x86/x86asm"

// gprX86 returns the number of the general register that r is or is a part of, and the width of r
// in bytes.
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

// isVectorX86 reports whether r is a register of the x87, MMX or SSE state,
// which the search does not track.
func isVectorX86(r x86asm.Reg) bool {
	return r >= x86asm.F0 && r <= x86asm.X15
}

// gpr returns the number of the general register that a is, if it is a whole one.
func (m x86) gpr(a x86asm.Arg) (uint8, bool) {
	r, ok := a.(x86asm.Reg)
	if !ok {
		return 0, false
	}
	n, width, ok := gprX86(r)
	return n, ok && width == m.word()
}

// indirect returns the memory operand a as the search tracks it: in 32-bit code, where arguments
// are in memory, at a distance from a register.
func (m x86) indirect(a x86asm.Mem, size int) memoryOperand {
	n, width, ok := gprX86(a.Base)
	if m.bits != 32 || !ok || width != 4 || a.Index != 0 || a.Segment != 0 {
		return memoryOperand{}
	}
	return memoryOperand{known: true, base: n, disp: int(int32(a.Disp)), size: size}
}

// operand returns the number of the place of a in the state: that of a whole register, or
// inMemory. x has at most one operand in memory.
func (m x86) operand(fx *effects, x *x86asm.Inst, a x86asm.Arg) (uint8, bool) {
	mem, ok := a.(x86asm.Mem)
	if !ok {
		return m.gpr(a)
	}
	o := m.indirect(mem, x.MemBytes)
	if !o.known || o.size != m.word() {
		return 0, false
	}
	fx.mem = o
	return inMemory, true
}

// writes adds the effect of a result in a. It reports false for system registers.
func (m x86) writes(fx *effects, x *x86asm.Inst, a x86asm.Arg) bool {
	switch a := a.(type) {
	case x86asm.Mem:
		fx.stores = true
		if m.bits != 32 {
			return true
		}
		fx.mem = m.indirect(a, x.MemBytes)
		if !fx.mem.known || fx.mem.size == 0 {
			fx.kill |= stackWords
		}
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
