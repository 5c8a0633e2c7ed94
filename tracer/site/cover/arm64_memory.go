package cover

// loadStore translates loads and stores.
func (w word) loadStore(in *insn) bool {
	vector := w.bits(26, 1) == 1
	switch {
	case w.is(0xbf800000, 0x0c000000), w.is(0xbf800000, 0x0d000000),
		w.is(0xbf800000, 0x0c800000), w.is(0xbf800000, 0x0d800000): // several vectors
		in.add(effect{dst: operand{kind: memory, reg: w.rn(), index: true}})
		if w.bits(23, 1) == 1 {
			in.add(effect{dst: reg(w.rn())})
		}
	case w.is(0xff200000, 0xd9200000):
		w.tags(in)
	case w.is(0x3f000000, 0x08000000):
		w.exclusive(in)
	case w.is(0x3b000000, 0x18000000): // literals
		if !vector {
			in.kill(w.rd())
		}
	case w.is(0x3a000000, 0x28000000):
		return w.pair(in, vector)
	case w.is(0x3b000000, 0x39000000): // unsigned offset
		size := w.scale(vector)
		w.single(in, vector, operand{kind: memory, reg: w.rn(), disp: int64(w.bits(10, 12)) << size, size: 1 << size})
	case w.is(0x3b000000, 0x38000000):
		return w.indexed(in, vector)
	default:
		return false
	}
	return true
}

// scale returns the logarithm of the size of a single register in memory.
func (w word) scale(vector bool) uint32 {
	if vector {
		return w.bits(30, 2) | w.bits(23, 1)<<2
	}
	return w.bits(30, 2)
}

// tags translates accesses to the tags of memory.
func (w word) tags(in *insn) {
	in.rare = true
	mode := w.bits(10, 2)
	if mode == 0 && w.bits(22, 1) == 1 { // ldg, ldgm
		in.kill(w.rd())
		return
	}
	in.add(effect{dst: operand{kind: memory, reg: w.rn(), index: true}})
	if mode&1 == 1 {
		disp := w.signed(12, 9) * 16
		in.add(effect{kind: address, dst: reg(w.rn()), a: operand{kind: memory, reg: w.rn(), disp: disp}})
	}
}

// exclusive translates exclusive and ordered accesses, and compare-and-swap.
func (w word) exclusive(in *insn) {
	loads, o2, o1 := w.bits(22, 1) == 1, w.bits(23, 1) == 1, w.bits(21, 1) == 1
	swap := o1 && (o2 || w.bits(31, 1) == 0)
	if !loads || swap {
		in.add(effect{dst: operand{kind: memory, reg: w.rn(), index: true}})
		in.uses(w.rd())
	}
	switch {
	case swap:
		in.kill(w.rm())
		if !o2 && w.rm() < 30 { // two registers
			in.kill(w.rm() + 1)
		}
	case loads:
		in.kill(w.rd())
		if o1 {
			in.kill(w.ra())
		}
	case !o2:
		in.kill(w.rm()) // whether it was stored
	}
}

// pair translates ldp, stp and similar.
func (w word) pair(in *insn, vector bool) bool {
	opc, loads := w.bits(30, 2), w.bits(22, 1) == 1
	size := 4 << (opc >> 1)
	if vector {
		size = 4 << opc
	} else if opc == 1 && !loads {
		return false // stgp
	}
	disp := w.signed(15, 7) * int64(size)
	at := operand{kind: memory, reg: w.rn(), disp: disp, size: size}
	back := effect{kind: address, dst: reg(w.rn()), a: operand{kind: memory, reg: w.rn(), disp: disp}}
	mode := w.bits(23, 2)
	if mode == 1 || mode == 3 {
		at.disp = 0
	}
	if mode == 3 {
		in.add(back)
	}
	second := at
	second.disp += int64(size)
	order := []struct {
		r  location
		at operand
	}{{w.rd(), at}, {w.ra(), second}}
	if loads && w.rd() == w.rn() {
		order[0], order[1] = order[1], order[0] // the address is used before it is overwritten
	}
	for _, x := range order {
		in.access(x.r, x.at, vector, loads)
	}
	if mode == 1 {
		in.add(back)
	}
	return true
}

// access loads or stores one register.
func (in *insn) access(r location, at operand, vector, loads bool) {
	whole := !vector && at.size == 8
	switch {
	case !loads && whole:
		in.add(effect{dst: at, a: source(r)})
	case !loads:
		in.add(effect{dst: at})
	case vector || r == spARM64:
	case whole:
		in.add(effect{dst: reg(r), a: at})
	default:
		in.add(effect{dst: reg(r)})
	}
}

// single translates an access of one register.
func (w word) single(in *insn, vector bool, at operand) {
	opc := w.bits(22, 2)
	if !vector && w.bits(30, 2) == 3 && opc == 2 {
		return // prfm
	}
	loads := opc != 0
	if vector {
		loads = opc&1 == 1
	}
	in.access(w.rd(), at, vector, loads)
}

// indexed translates the other forms of single accesses, and atomic operations.
func (w word) indexed(in *insn, vector bool) bool {
	at := operand{kind: memory, reg: w.rn(), size: 1 << w.scale(vector)}
	mode := w.bits(10, 2)
	if w.bits(21, 1) == 1 {
		switch mode {
		case 0: // ldadd, swp and similar
			in.uses(w.rm())
			at.index = true
			in.add(effect{dst: at})
			in.kill(w.rd())
			return !vector
		case 2: // register offset
			in.uses(w.rm())
			at.index = true
			w.single(in, vector, at)
			return true
		}
		return false // authenticated
	}
	disp := w.signed(12, 9)
	back := effect{kind: address, dst: reg(w.rn()), a: operand{kind: memory, reg: w.rn(), disp: disp}}
	switch mode {
	case 1:
		w.single(in, vector, at)
		in.add(back)
	case 3:
		in.add(back)
		w.single(in, vector, at)
	default:
		at.disp = disp
		w.single(in, vector, at)
	}
	return true
}
