package cover

// value is what a location holds. Equal values, other than unknown ones, are equal contents.
type value struct {
	kind valueKind
	loc  location // of made and merged
	n    int64    // see valueKind
}

type valueKind uint8

const (
	unknown  valueKind = iota
	initial            // of register loc at the entry; with n = 1 it is signed
	argument           // number n
	product            // of the two factors
	stack              // the address n bytes above the stack pointer at the entry
	made               // by the instruction at address n, into loc
	merged             // where paths meet at address n, in loc
	number             // n itself
)

// state is what is known before an instruction.
type state struct {
	vals    [locations]value
	zero    locationSet // of what is known to be zero
	nonzero locationSet // of what is known not to be zero
	tested  value       // the flags mean equal exactly if this is with; unknown if nothing is known
	with    int64
	// escaped is set if code outside of the function may have an address of the frame.
	escaped bool
}

func newState(m machine) *state {
	s := &state{}
	for r := range location(registers) {
		s.vals[r] = value{kind: initial, loc: r}
	}
	for i, r := range m.arguments() {
		s.vals[r] = value{kind: argument, n: int64(i)}
	}
	s.vals[m.stackPointer()] = value{kind: stack}
	return s
}

// depth returns how many bytes the stack pointer is below its value at the entry.
func (s *state) depth(m machine) (int64, bool) {
	v := s.vals[m.stackPointer()]
	return -v.n, v.kind == stack
}

// forget makes the content of l unknown.
func (s *state) forget(l location) {
	s.vals[l] = value{}
	s.zero.remove(l)
	s.nonzero.remove(l)
}

// drop removes what is known about other locations that hold v: an instruction is about to make
// another value of the same name.
func (s *state) drop(v value) {
	for l, w := range &s.vals {
		if w == v {
			s.vals[l] = value{}
		}
	}
	if s.tested == v {
		s.tested = value{}
	}
}

// learn records that v is zero, or that it is not. It returns false if that cannot be.
func (s *state) learn(v value, zero bool) bool {
	switch v.kind {
	case unknown:
		return true
	case number:
		return zero == (v.n == 0)
	}
	for i, w := range &s.vals {
		l := location(i)
		if w != v {
			continue
		}
		if zero && s.nonzero.has(l) || !zero && s.zero.has(l) {
			return false
		}
		s.zero.put(l, zero)
		s.nonzero.put(l, !zero)
	}
	return true
}

// compared records what a comparison has shown. It returns false if that cannot be. If one factor
// is one, the other is the product.
func (s *state) compared(equal bool, factors [2]int) bool {
	v := s.tested
	switch {
	case v.kind == number:
		return equal == (v.n == s.with)
	case s.with == 0:
		return s.learn(v, equal)
	case s.with != 1 || !equal || v.kind != argument || factors[0] == factors[1]:
		return true
	}
	for i, f := range factors {
		if v.n == int64(f) {
			for l, w := range &s.vals {
				if w == (value{kind: argument, n: int64(factors[1-i])}) {
					s.vals[l] = value{kind: product}
				}
			}
		}
	}
	return true
}

// meet reduces s to what holds in t as well, at address pc, and reports whether s changed. Values
// that are merged here have new names, so that those of an earlier round are not confused with
// them.
func (s *state) meet(t *state, pc int64) bool {
	was := *s
	var names map[[2]value]location
	for i := range s.vals {
		l := location(i)
		a, b := s.vals[i], t.vals[i]
		here := func(v value) bool { return v.kind == merged && v.n == pc }
		switch {
		case a == b && !here(a):
		case a.kind == unknown || b.kind == unknown:
			s.vals[i] = value{}
		default:
			if names == nil {
				names = map[[2]value]location{}
			}
			name, ok := names[[2]value{a, b}]
			if !ok {
				name = l
				names[[2]value{a, b}] = l
			}
			s.vals[i] = value{kind: merged, n: pc, loc: name}
		}
	}
	s.zero = s.zero.and(t.zero)
	s.nonzero = s.nonzero.and(t.nonzero)
	s.tested = s.meetTested(&was, t)
	s.escaped = s.escaped || t.escaped
	return *s != was
}

// meetTested returns the name in s of what both was and t have tested.
func (s *state) meetTested(was, t *state) value {
	if was.with != t.with {
		return value{}
	}
	if was.tested == t.tested && t.tested.kind == number {
		return t.tested
	}
	for i := range s.vals {
		if s.vals[i].kind != unknown && was.vals[i] == was.tested && t.vals[i] == t.tested {
			return s.vals[i]
		}
	}
	return value{}
}
