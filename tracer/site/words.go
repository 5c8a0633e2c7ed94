package site

// On i386 the arguments are in memory. The search tracks their words and the addresses of the
// stack that registers hold.

// stackWords is the set of places that are words of the stack.
const stackWords = 0xff << StackWord

// inMemory replaces the number of a register in an effect whose operand is in memory.
const inMemory = 24

// memoryOperand is an operand in memory, of size bytes at a distance from a
// register.
type memoryOperand struct {
	known bool // otherwise it may be anywhere
	base  uint8
	disp  int // in bytes
	size  int // in bytes
}

// followStack records in s that the stack pointer is an address of the stack, if m passes
// arguments there. After a call it does not, because the result must be in a register.
func (s *state) followStack(m machine) {
	if m.arguments()[0] == StackWord {
		s.regs[rsp] = value{kind: stackAddress}
	}
}

// moveStack lowers the stack pointer by n bytes.
func (s *state) moveStack(n int) {
	s.stack += n
	if sp := &s.regs[rsp]; sp.kind == stackAddress {
		*sp = sp.plus(-n)
	}
}

// plus returns the value n bytes above an address of the stack, and an unknown one for other
// values.
func (v value) plus(n int) value {
	if v.kind != stackAddress {
		return value{}
	}
	v.offset += n
	return v
}

// locate returns fx with inMemory replaced by the place of the operand in memory. A store also
// kills the other words that it may have written.
func (s *state) locate(fx *effects) *effects {
	if !fx.mem.known {
		return fx
	}
	out := *fx
	place, touched := s.place(fx.mem)
	if fx.stores {
		out.kill |= touched
	}
	resolve := func(r uint8) uint8 {
		if r == inMemory {
			return place
		}
		return r
	}
	for i := range out.sets[:out.nsets] {
		x := &out.sets[i]
		x.dst, x.a, x.b = resolve(x.dst), resolve(x.a), resolve(x.b)
	}
	out.testReg = resolve(out.testReg)
	return &out
}

// place returns the place of the word of the stack that o is, or NoReg, and the set of places
// that it may overlap.
func (s *state) place(o memoryOperand) (uint8, uint32) {
	at := s.regs[o.base&31]
	if at.kind != stackAddress {
		return NoReg, stackWords
	}
	// The return address is just below the first word.
	from := at.offset + o.disp - 4
	var touched uint32
	for i := range 8 {
		if from < 4*(i+1) && from+o.size > 4*i {
			touched |= 1 << (StackWord + i)
		}
	}
	if o.size == 4 && from >= 0 && from < 32 && from%4 == 0 {
		return uint8(StackWord + from/4), touched
	}
	return NoReg, touched
}
