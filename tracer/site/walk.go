package site

// maxSteps bounds the walk, in addition to [Window].
const maxSteps = 40

// step is an instruction of the walk and what is known before it.
type step struct {
	offset int
	cost   Cost
	state  state
}

// path is the straight path from a function's entry that every call takes.
type path struct {
	machine machine
	steps   []step
	thunk   *Thunk
}

// walk follows f from its entry to the first branch, or to the first instruction whose effects
// are unknown. Both are part of the path, because a probe sees the state before them. If calls
// with a null pointer may be missed, walk continues after the check for one.
func walk(m machine, f *Function) *path {
	w := &path{machine: m}
	s := newState(m, f)
	code := f.Code[:min(len(f.Code), Window)]
	work := false // an instruction other than a hint was seen
	for offset := 0; offset < len(code) && len(w.steps) < maxSteps; {
		pc := f.Entry + uint64(offset)
		// The instruction may extend beyond the window.
		in := m.decode(f.Code[offset:], pc)
		if in.size == 0 {
			return w
		}
		cost := in.cost
		if cost == NopOptimised && s.stored {
			// The call that replaces the nop pushes an address. It may overwrite what the
			// preceding code stored below the stack pointer.
			cost = Emulated
		}
		w.steps = append(w.steps, step{offset, cost, s})
		switch in.kind {
		case plain:
			if !s.apply(&in.fx, m.frame()) {
				return w
			}
			work = work || !in.hint
		case cond:
			if !f.SkipNull || !s.sortsOutNull(in.zero, f) {
				return w
			}
			s.nonNull = true
			work = true
		case jump, leave:
			if !work && (in.direct || in.slot != 0) {
				w.thunk = &Thunk{Target: in.target, Slot: in.slot}
			}
			return w
		default:
			return w
		}
		offset += in.size
	}
	return w
}

// AfterNullCheck returns the address that calls of f whose Args[0] is not zero reach after the
// check for null. It is the entry if the function does not begin with such a check.
func AfterNullCheck(o Options, f Function) (uint64, error) {
	m, err := machineOf(o)
	if err != nil {
		return 0, err
	}
	f.SkipNull = true
	if err := check(m, &f); err != nil {
		return 0, err
	}
	for _, s := range walk(m, &f).steps {
		if s.state.nonNull {
			return f.Entry + uint64(s.offset), nil
		}
	}
	return f.Entry, nil
}

// sortsOutNull reports whether a branch is taken exactly by calls whose Args[0] is zero.
func (s *state) sortsOutNull(z zeroBranch, f *Function) bool {
	v := value{kind: argument, a: uint8(f.Args[0])}
	switch z.kind {
	case flagsZero:
		return s.tested == v
	case regZero:
		return s.regs[z.reg&31] == v
	}
	return false
}
