package site

// value is the contents of a register or a word of the stack, as far as they depend on arguments.
type value struct {
	kind   valueKind
	a, b   uint8 // indexes of arguments, a < b in a product
	offset int   // of an address, in bytes above the stack pointer of the entry
}

type valueKind uint8

const (
	other valueKind = iota
	argument
	product
	stackAddress
)

// state is what is known before an instruction.
type state struct {
	regs     [32]value // registers, and from StackWord words of the stack
	tested   value     // the flags mean equal exactly if this is zero
	stack    int       // bytes by which the stack pointer is below the entry's
	stored   bool      // memory was written
	linkRead bool
	linkSet  bool
	frame    bool // the frame pointer changed
	nonNull  bool // Args[0] was found not to be zero
}

func newState(m machine, f *Function) state {
	var s state
	if f.AfterCall {
		s.regs[m.result()] = value{kind: argument}
		return s
	}
	s.followStack(m)
	for i, r := range m.arguments() {
		s.regs[r] = value{kind: argument, a: uint8(i)}
	}
	return s
}

// apply changes s to the state after a plain instruction. It reports false if too little is known
// about the stack afterwards.
func (s *state) apply(fx *effects, frameReg uint8) bool {
	fx = s.locate(fx)
	var next [len(fx.sets)]value
	for i, set := range fx.sets[:fx.nsets] {
		next[i] = s.result(set, fx.mem.disp)
	}
	if fx.flags {
		s.tested = value{}
		if fx.test {
			s.tested = s.regs[fx.testReg&31]
		}
	}
	for r := range s.regs {
		if fx.kill&(1<<r) != 0 {
			s.regs[r] = value{}
		}
	}
	for i, set := range fx.sets[:fx.nsets] {
		if set.dst != NoReg {
			s.regs[set.dst&31] = next[i]
		}
	}
	s.moveStack(fx.stack)
	s.stored = s.stored || fx.stores
	s.linkRead = s.linkRead || fx.linkRead
	s.linkSet = s.linkSet || fx.linkSet
	s.frame = s.frame || fx.kill&(1<<frameReg) != 0
	return !fx.stackLost && s.stack >= 0
}

// result returns the value that x computes; disp is used with addressOf.
func (s *state) result(x set, disp int) value {
	a := s.regs[x.a&31]
	switch {
	case x.kind == copyOf, x.kind == addressOf && disp == 0:
		return a
	case x.kind == addressOf:
		return a.plus(disp)
	}
	b := s.regs[x.b&31]
	if a.kind != argument || b.kind != argument || a.a == b.a {
		return value{}
	}
	return value{kind: product, a: min(a.a, b.a), b: max(a.a, b.a)}
}

// find returns the place that holds v, and preferred if that is one.
func (s *state) find(m machine, v value, preferred uint8) (uint8, bool) {
	if preferred < NoReg && s.regs[preferred] == v {
		return preferred, true
	}
	for r := range uint8(NoReg) {
		if s.regs[r] == v && m.readable()&(1<<r) != 0 {
			return r, true
		}
	}
	return NoReg, false
}

// places returns where the arguments of f are. If one is in no place, missing is its index.
func (s *state) places(m machine, f *Function) (places []Place, products, missing int) {
	missing = -1
	places = make([]Place, len(f.Args))
	for i, arg := range f.Args {
		preferred := m.arguments()[arg]
		if f.AfterCall {
			preferred = m.result()
		}
		r, ok := s.find(m, value{kind: argument, a: uint8(arg)}, preferred)
		if !ok && missing < 0 {
			missing = arg
		}
		places[i] = Place{Reg: r}
	}
	x := f.Factors
	if missing < 0 || x[0] == x[1] {
		return places, 0, missing
	}
	v := value{kind: product, a: uint8(min(x[0], x[1])), b: uint8(max(x[0], x[1]))}
	r, ok := s.find(m, v, NoReg)
	if !ok {
		return places, 0, missing
	}
	missing = -1
	for i, arg := range f.Args {
		switch {
		case arg == x[0] || arg == x[1]:
			places[i] = Place{Reg: r, Product: true}
			products++
		case places[i].Reg == NoReg && missing < 0:
			missing = arg
		}
	}
	return places, products, missing
}
