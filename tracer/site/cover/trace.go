package cover

import "slices"

// traceMay computes where the value that will be returned may be.
func (g *graph) traceMay() {
	g.backwards(func(n *node) bool {
		may := n.may
		switch n.end {
		case returns:
			may.add(g.machine.result())
		case tailSame:
			may.add(g.machine.arguments()[0])
		}
		for _, e := range n.out {
			may = may.or(n.before(e.to.may))
		}
		changed := may != n.may
		n.may = may
		return changed
	})
}

// backwards calls update for all nodes, later ones first, until none reports a change.
func (g *graph) backwards(update func(n *node) bool) {
	for changed := true; changed; {
		changed = false
		for _, n := range slices.Backward(g.order) {
			changed = update(n) || changed
		}
	}
}

// before returns the locations before the instruction of n whose values are in one of after
// afterwards.
func (n *node) before(after locationSet) locationSet {
	if after == everywhere {
		return everywhere
	}
	var s locationSet
	for l := range after.all {
		if from := n.from[l]; from != nowhere {
			s.add(from)
		}
	}
	return s
}

// trace computes for each node whether a call that comes there may return a block, and where the
// value is that it will return.
func (g *graph) trace() {
	for _, n := range g.order {
		n.holds = everywhere
	}
	g.traceResult()
	g.backwards(func(n *node) bool {
		was := n.holds
		n.holds = was.and(g.holds(n))
		return n.holds != was
	})
}

// traceResult computes which nodes lead to a return, and to one of something that may not be
// zero.
func (g *graph) traceResult() {
	g.backwards(func(n *node) bool {
		ends, result := n.ends, n.result
		switch n.end {
		case returns:
			ends, result = true, !n.state.zero.has(g.machine.result())
		case tailSame:
			ends, result = true, !n.state.zero.has(g.machine.arguments()[0])
		case tailCall:
			ends, result = true, true
		}
		for _, e := range n.out {
			ends, result = ends || e.to.ends, result || e.to.result
		}
		changed := ends != n.ends || result != n.result
		n.ends, n.result = ends, result
		return changed
	})
}

// holds returns where the value that a call at n will return is known to be.
func (g *graph) holds(n *node) locationSet {
	if !n.ends {
		return everywhere
	}
	var holds locationSet
	switch n.end {
	case returns:
		holds.add(g.machine.result())
	case tailSame:
		holds.add(g.machine.arguments()[0])
	case goesOn:
		holds = everywhere
		for _, e := range n.out {
			holds = holds.and(n.before(e.to.holds))
		}
	}
	if !n.result {
		// It returns zero, which is also what these hold.
		holds = holds.or(n.state.zero)
	}
	return n.state.withEqual(holds)
}

// withEqual adds the locations that hold the same as one of the set.
func (s *state) withEqual(set locationSet) locationSet {
	if set == everywhere {
		return set
	}
	out := set
	for l := range set.all {
		v := s.vals[l]
		if v.kind == unknown {
			continue
		}
		for m, w := range &s.vals {
			if w == v {
				out.add(location(m))
			}
		}
	}
	return out
}
