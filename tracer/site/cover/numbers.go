package cover

// maxCallee is how many instructions of a called function are read to find out whether it
// returns.
const maxCallee = 1 << 10

// numbers is a call with some known arguments. glibc's __libc_message returns or not by its first
// one.
type numbers struct {
	pc    uint64
	known [4]bool
	value [4]int64
}

// neverReturns reports whether no path of the called function leads to a return.
func (c *callees) neverReturns(n numbers) bool {
	if never, ok := c.never[n]; ok {
		return never
	}
	c.never[n] = false // unless it is proved otherwise; ends recursion
	s := &state{}
	for i, known := range n.known {
		if known {
			s.vals[c.machine.arguments()[i]] = value{kind: number, n: n.value[i]}
		}
	}
	w := search{callees: c, states: map[uint64]*state{}}
	never := w.run(n.pc, s)
	c.never[n] = never
	return never
}

// search follows a called function with the numbers that its registers hold. It knows nothing
// about memory and the stack.
type search struct {
	*callees
	states map[uint64]*state
	open   []uint64
}

// run reports whether all paths from pc end without a return.
func (w *search) run(pc uint64, s *state) bool {
	w.reach(pc, s)
	for len(w.open) > 0 {
		pc := w.open[len(w.open)-1]
		w.open = w.open[:len(w.open)-1]
		if len(w.states) > maxCallee || !w.follow(pc) {
			return false
		}
	}
	return true
}

// reach merges a state into the one at pc.
func (w *search) reach(pc uint64, s *state) {
	old := w.states[pc]
	if old == nil {
		t := *s
		w.states[pc] = &t
		w.open = append(w.open, pc)
		return
	}
	changed := false
	for i, v := range &old.vals {
		if v.kind == number && s.vals[i] != v {
			old.vals[i] = value{}
			changed = true
		}
	}
	if old.tested.kind == number && (s.tested != old.tested || s.with != old.with) {
		old.tested = value{}
		changed = true
	}
	if changed {
		w.open = append(w.open, pc)
	}
}

// follow reports false if the function may return after the instruction at pc.
func (w *search) follow(pc uint64) bool {
	code := w.image.at(pc)
	if len(code) == 0 {
		return false
	}
	in := w.machine.decode(code, pc)
	if in.size == 0 {
		return false
	}
	s := *w.states[pc]
	w.apply(&in, &s)
	switch in.flow {
	case ret, indirect:
		return false
	case halt:
		return true
	case jump:
		if known, ok := w.named(in.target); ok {
			return known.NoReturn
		}
		w.reach(in.target, &s)
		return true
	case call:
		if w.about(in.target, &s).NoReturn {
			return true
		}
		for l := range w.machine.clobbered().all {
			s.vals[l] = value{}
		}
		s.tested = value{}
	case branch:
		if t := s; t.decide(&in, true, [2]int{}) {
			w.reach(in.target, &t)
		}
		if t := s; !t.decide(&in, false, [2]int{}) {
			return true
		}
	}
	after := pc + uint64(in.size)
	if w.image.Bounds != nil {
		if _, end, ok := w.image.Bounds(pc); ok && after >= end {
			return in.flow == call // which then does not return
		}
	}
	w.reach(after, &s)
	return true
}

// apply applies an instruction to the numbers in registers.
func (w *search) apply(in *insn, s *state) {
	if in.stopped != "" {
		*s = state{}
		return
	}
	st := step{state: s}
	for i := range in.effects {
		e := &in.effects[i]
		if e.dst.kind != register && e.dst.kind != part {
			continue
		}
		v := value{}
		a, b := e.a, e.b
		switch {
		case e.dst.kind == part || a.kind == memory || b.kind == memory:
		case e.kind == move:
			v = st.read(a)
		case e.kind == mask:
			if x, y := st.read(a), st.read(b); x.kind == number && y.kind == number {
				v = value{kind: number, n: x.n & y.n}
			}
		}
		s.vals[e.dst.reg] = v
	}
	if in.flags.changes {
		s.tested, s.with = value{}, in.flags.with
		switch t := in.flags.test; t.kind {
		case register, low:
			s.tested = st.read(t)
		}
	}
}
