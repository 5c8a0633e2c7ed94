package cover

import "rtrace-bpf/tracer/site"

// operand is what an effect reads or writes.
type operand struct {
	kind  operandKind
	reg   location // of register; base of memory
	disp  int64    // of memory and constants
	size  int      // of memory, in bytes
	index bool     // memory: something unknown is added to the address
}

type operandKind uint8

const (
	nothing  operandKind = iota // an unknown value; as a destination, none
	register                    // a whole register
	low                         // the lower four bytes of a register; the others become zero
	part                        // a part of a register: its other bytes keep their value
	memory                      // at disp above reg
	far                         // memory whose address is not that of a register
	constant                    // disp
)

func reg(r location) operand { return operand{kind: register, reg: r} }

// effect is a part of what an instruction does. The effects of an instruction follow each other.
type effect struct {
	kind effectKind
	dst  operand
	a, b operand
}

type effectKind uint8

const (
	move     effectKind = iota // dst = a; unknown if a is nothing
	multiply                   // dst = a * b
	mask                       // dst = a & b
	address                    // dst = the address of a
	use                        // a is read, and its value may go anywhere
	sign                       // dst, the link register, is signed; or authenticated if a is 0
)

// flagEffect is what an instruction does to the flags.
type flagEffect struct {
	changes bool
	test    operand // the flags then mean equal if this register, or its low part, is with
	with    int64
}

// flow is where execution continues after an instruction.
type flow uint8

const (
	next     flow = iota
	branch        // to the next one or the target
	jump          // to the target
	call          // of the target, and then to the next one
	ret           // to the caller
	halt          // nowhere
	indirect      // to an unknown address
)

// insn is an instruction.
type insn struct {
	size    int
	cost    site.Cost
	flow    flow
	target  uint64 // of jump, call and branch; 0 if unknown
	slot    uint64 // of a jump through a pointer: the pointer's address
	when    Condition
	zero    operand // of a branch: taken exactly if this register, or its low part, is zero
	equal   bool    // of a branch: taken exactly if the flags mean equal
	not     bool    // of zero and equal: taken otherwise
	effects []effect
	flags   flagEffect
	rare    bool   // hardly any process runs it: memory tagging
	stopped string // why the interpretation ends here, or ""
}

// origins maps each location after an instruction to the location before it that held the same
// value, or nowhere.
type origins [locations]location

func identity() *origins {
	var o origins
	for l := range o {
		o[l] = location(l)
	}
	return &o
}

// step is the application of an instruction to a state.
type step struct {
	*state
	machine machine
	factors [2]int
	from    *origins
	pc      int64
}

// apply changes s to the state after the instruction at pc, without what a call does, and from to
// its origins. It returns the reason if the instruction cannot be interpreted.
func (s *step) apply(in *insn) string {
	if in.stopped != "" {
		return in.stopped
	}
	for i := range in.effects {
		if reason := s.effect(&in.effects[i]); reason != "" {
			return reason
		}
	}
	if in.flags.changes {
		s.tested, s.with = value{}, in.flags.with
		switch t := in.flags.test; t.kind {
		case register:
			s.tested = s.vals[t.reg]
		case low:
			s.tested = s.vals[t.reg].low()
		}
	}
	return ""
}

func (s *step) effect(e *effect) string {
	if e.kind == use {
		s.escape(e.a)
		return ""
	}
	v, origin := s.result(e)
	zero, nonzero := false, false
	if origin != nowhere {
		zero, nonzero = s.zero.has(origin), s.nonzero.has(origin)
	} else if v.kind == number {
		zero, nonzero = v.n == 0, v.n != 0
	}
	switch e.dst.kind {
	case register, part:
		l := e.dst.reg
		if l == s.machine.stackPointer() {
			return s.moveStack(v)
		}
		if v.kind == unknown && e.dst.kind == register {
			v = value{kind: made, loc: l, n: s.pc}
			s.drop(v)
			if origin != nowhere {
				s.vals[origin] = v
			}
		}
		if e.dst.kind == part {
			s.forget(l)
			s.from[l] = nowhere
			return ""
		}
		s.assign(l, v, zero, nonzero, origin)
	case memory, far:
		s.store(e, v, zero, nonzero, origin)
	}
	return ""
}

func (s *step) assign(l location, v value, zero, nonzero bool, origin location) {
	before := nowhere
	if origin != nowhere {
		before = s.from[origin]
	}
	s.vals[l] = v
	s.zero.put(l, zero)
	s.nonzero.put(l, nonzero)
	s.from[l] = before
}

// result returns the value of e, and the location that holds it as a whole.
func (s *step) result(e *effect) (value, location) {
	switch e.kind {
	case sign:
		if v := s.vals[e.dst.reg]; v.kind == initial && v.n == 1-e.a.disp {
			return value{kind: initial, loc: v.loc, n: e.a.disp}, nowhere
		}
	case mask:
		if a, b := s.read(e.a), s.read(e.b); a.kind == number && b.kind == number {
			return value{kind: number, n: a.n & b.n}, nowhere
		}
	case move:
		switch e.a.kind {
		case constant, low:
			return s.read(e.a), nowhere
		case register:
			return s.vals[e.a.reg], e.a.reg
		case memory:
			if l, ok := s.word(e.a); ok {
				return s.vals[l], l
			}
		}
	case address:
		base := s.vals[e.a.reg]
		if e.a.disp == 0 && !e.a.index {
			return base, e.a.reg
		}
		if base.kind != stack {
			return value{}, nowhere
		}
		if e.a.index {
			s.escaped = true
			return value{}, nowhere
		}
		return value{kind: stack, n: base.n + e.a.disp}, nowhere
	case multiply:
		a, b := s.read(e.a), s.read(e.b)
		x, y := value{kind: argument, n: int64(s.factors[0])}, value{kind: argument, n: int64(s.factors[1])}
		if x != y && (a == x && b == y || a == y && b == x) {
			return value{kind: product}, nowhere
		}
	}
	return value{}, nowhere
}

// low returns the lower four bytes of v.
func (v value) low() value {
	if v.kind == number {
		return value{kind: number, n: int64(uint32(v.n))}
	}
	return value{}
}

func (s *step) read(o operand) value {
	switch o.kind {
	case constant:
		return value{kind: number, n: o.disp}
	case low:
		return s.vals[o.reg].low()
	case register:
		return s.vals[o.reg]
	case memory:
		if l, ok := s.word(o); ok {
			return s.vals[l]
		}
	}
	return value{}
}

// word returns the location of an operand that is a word of the frame.
func (s *step) word(o operand) (location, bool) {
	base := s.vals[o.reg]
	if base.kind != stack || o.index || o.size != 8 {
		return nowhere, false
	}
	return wordAt(base.n + o.disp)
}

// store writes v to memory.
func (s *step) store(e *effect, v value, zero, nonzero bool, origin location) {
	if v.kind == stack {
		s.escaped = true
	}
	o := e.dst
	base := value{}
	if o.kind == memory {
		base = s.vals[o.reg]
	}
	if base.kind != stack {
		// A store to an unknown address hits the frame only if its address is known outside.
		s.loseWords(func(location) bool { return s.escaped })
		return
	}
	if l, ok := s.word(o); ok {
		s.assign(l, v, zero, nonzero, origin)
		return
	}
	// A part of a word, several words, or an unknown element of an array in the frame.
	low, high := base.n+o.disp, base.n+o.disp+int64(o.size)
	s.loseWords(func(l location) bool {
		return o.index || o.size == 0 || l.offset() < high && l.offset()+8 > low
	})
}

// moveStack sets the stack pointer. What is above it no longer belongs to the frame.
func (s *step) moveStack(v value) string {
	if v.kind != stack || v.n > 0 {
		return "the stack pointer is unknown"
	}
	sp := s.machine.stackPointer()
	if v.n > s.vals[sp].n {
		s.loseWords(func(l location) bool { return l.offset() < v.n })
	}
	s.vals[sp] = v
	return ""
}

// loseWords forgets words of the frame.
func (s *step) loseWords(which func(location) bool) {
	for l := location(registers); l < locations; l++ {
		if which(l) {
			s.forget(l)
			s.from[l] = nowhere
		}
	}
}

// escape records that the value of o may be anywhere.
func (s *step) escape(o operand) {
	if o.kind == register && o.reg != s.machine.stackPointer() && s.vals[o.reg].kind == stack {
		s.escaped = true
	}
}

// called applies what a call does to the registers and the frame.
func (s *step) called(c Callee) {
	for l := range s.machine.passed().all {
		s.escape(reg(l))
	}
	first := s.machine.arguments()[0]
	v, zero, nonzero, origin := s.vals[first], s.zero.has(first), s.nonzero.has(first), s.from[first]
	for l := range s.machine.clobbered().all {
		s.forget(l)
		s.from[l] = nowhere
	}
	s.tested = value{}
	sp := s.vals[s.machine.stackPointer()].n
	stray := s.escaped
	s.loseWords(func(l location) bool { return stray || l.offset() < sp })
	r := s.machine.result()
	if c.First && v.kind != unknown {
		s.vals[r], s.from[r] = v, origin
		s.zero.put(r, zero)
		s.nonzero.put(r, nonzero)
		return
	}
	v = value{kind: made, loc: r, n: s.pc}
	s.drop(v)
	s.vals[r] = v
}
