package site

// immediate decodes data processing with an immediate operand.
func (m arm64) immediate(w uint32, in *insn) {
	fx := &in.fx
	rd, rn := w&31, w>>5&31
	switch op := w >> 23 & 7; op {
	case 0, 1: // adr, adrp
		in.cost = Emulated
		fx.killARM64(w)
		return
	case 2, 3: // add, sub; with tags
		fx.reads(rn)
		fx.flags = w>>29&1 == 1
		if fx.flags && op == 2 {
			// cmp xn, #0 is subs xzr, xn, #0.
			fx.test = w&0xfffffc1f == 0xf100001f && rn != spOrZero
			fx.testReg = uint8(rn)
		}
		if rd == spOrZero && !fx.flags {
			addSP(w, op == 2, fx)
			return
		}
	case 4: // and, orr, eor, ands
		fx.reads(rn)
		fx.flags = w>>29&3 == 3
		if rd == spOrZero && !fx.flags {
			fx.stackLost = true
			return
		}
	case 7: // extr
		fx.reads(rn, w>>16)
	case 6: // bfm, sbfm, ubfm
		fx.reads(rn)
	}
	fx.killARM64(w)
}

// addSP decodes additions to the stack pointer.
func addSP(w uint32, known bool, fx *effects) {
	if !known || w>>5&31 != spOrZero || w>>31 == 0 {
		fx.stackLost = true
		return
	}
	n := int(w >> 10 & 0xfff)
	if w>>22&1 == 1 {
		n <<= 12
	}
	if w>>30&1 == 0 {
		n = -n // add
	}
	fx.stack = n
}

// registerARM64 decodes data processing with register operands.
func registerARM64(w uint32, in *insn) {
	fx := &in.fx
	rd, rn, rm := uint8(w&31), uint8(w>>5&31), uint8(w>>16&31)
	fx.reads(w>>5, w>>16)
	switch op := w >> 24 & 0x1f; {
	case op == 0x0a: // logical, shifted register
		fx.flags = w>>29&3 == 3
		// tst xn, xn is ands xzr, xn, xn.
		fx.test = w&0xffe0fc1f == 0xea00001f && rn == rm && rn != spOrZero
		fx.testReg = rn
		// mov xd, xm is orr xd, xzr, xm.
		if w&0xffe0ffe0 == 0xaa0003e0 && rm != spOrZero && rd != spOrZero {
			fx.set(copyOf, rd, rm, rm)
			fx.linkSet = rd == x30
			return
		}
	case op == 0x0b: // add, sub
		fx.flags = w>>29&1 == 1
		if w>>21&1 == 1 && rd == spOrZero && !fx.flags {
			fx.stackLost = true // the extended form can write sp
			return
		}
	case op == 0x1a: // with carry, conditional, one and two sources
		fx.flags = w>>29&1 == 1
		if w>>21&7 == 2 {
			return // ccmp, ccmn: the low bits are not a register
		}
	case op == 0x1b: // three sources
		// Unlike on x86, no flag shows whether a product overflowed, so it cannot be used.
		fx.reads(w >> 10)
	}
	fx.killARM64(w)
}

// loadStoreARM64 decodes loads and stores. Exclusive and atomic ones and those of several vectors
// are not modelled, because a site before them is good enough.
func loadStoreARM64(w uint32, in *insn) {
	fx := &in.fx
	rt, rn := w&31, w>>5&31
	vector := w>>26&1 == 1
	switch op := w >> 27 & 7; {
	case w&0x3b000000 == 0x18000000:
		// Literals: a copy elsewhere would read from another address. Kernels before 6.12
		// simulate them, but incorrectly for user code.
		in.cost = Refused
		if !vector {
			fx.killARM64(w)
		}
	case op == 5: // pairs
		pairARM64(w, vector, fx)
	case op == 7: // single registers
		if !singleARM64(w, vector, fx) {
			in.kind, in.cost = unknown, Refused
			return
		}
	default:
		in.kind, in.cost = unknown, Refused
		return
	}
	if !vector {
		fx.reads(rt)
	}
	fx.reads(rn)
}

// pairARM64 decodes ldp, stp and similar.
func pairARM64(w uint32, vector bool, fx *effects) {
	if !vector {
		fx.reads(w >> 10)
	}
	if w>>22&1 == 0 {
		fx.stores = true
	} else if !vector {
		fx.killARM64(w)
		fx.killARM64(w >> 10)
	}
	if w>>23&1 == 0 { // stnp, ldnp; stp, ldp without writing back
		return
	}
	if w&0xc0400000 == 0x40000000 && !vector { // stgp, of its own scale
		fx.stackLost = true
		return
	}
	scale := uint(2) + uint(w>>31)
	if vector {
		scale = 2 + uint(w>>30)
	}
	writeBack(w, int(int32(w<<10)>>25)<<scale, fx)
}

// singleARM64 decodes ldr, str and similar.
func singleARM64(w uint32, vector bool, fx *effects) bool {
	offset := w>>24&1 == 1
	if !offset {
		mode := w >> 10 & 3
		if w>>21&1 == 1 {
			if mode != 2 {
				return false // atomic; authenticated
			}
			fx.reads(w >> 16)
		} else if mode&1 == 1 {
			writeBack(w, int(int32(w<<11)>>23), fx)
		}
	}
	opc := w >> 22 & 3
	switch {
	case vector:
		fx.stores = opc&1 == 0
	case opc == 0:
		fx.stores = true
	case w>>30 == 3 && opc == 2:
		// prfm
	default:
		fx.killARM64(w)
	}
	return true
}

// writeBack adds n to the base register.
func writeBack(w uint32, n int, fx *effects) {
	if w>>5&31 == spOrZero {
		fx.stack = -n
		return
	}
	fx.killARM64(w >> 5)
}
