package cover

import (
	"errors"

	"rtrace-bpf/tracer/site"
)

// callees knows about the functions that are called. Its finder keeps whether a function never
// returns, and whether it returns its first argument.
type callees struct {
	*Finder
	machine machine
	inner   bool // this is for a function that is called
}

// errNotFirst ends the interpretation of a function that returns something else than its first
// argument. What is known at an instruction only becomes less, so it is certain at once.
var errNotFirst = errors.New("it returns something else")

// named returns what the image knows about a function.
func (c *callees) named(target uint64) (Callee, bool) {
	if c.image.Callee == nil || target == 0 {
		return Callee{}, false
	}
	return c.image.Callee(target)
}

// about returns what is known about the function at target, called with s; 0 is an unknown one.
func (c *callees) about(target uint64, s *state) Callee {
	if known, ok := c.named(target); ok || target == 0 {
		return known
	}
	n := numbers{pc: target}
	for i, r := range c.machine.arguments()[:len(n.known)] {
		if v := s.vals[r]; v.kind == number {
			n.known[i], n.value[i] = true, v.n
		}
	}
	return Callee{NoReturn: c.neverReturns(n), First: c.returnsFirst(target)}
}

// maxFirst is how many instructions a function may have that is found to return its first
// argument. glibc's memset of arm64 has about a hundred.
const maxFirst = 256

// returnsFirst reports whether a small function always returns its first argument.
func (c *callees) returnsFirst(target uint64) bool {
	if c.inner {
		return false
	}
	if first, ok := c.first[target]; ok {
		return first
	}
	c.first[target] = false
	g := newGraph(&callees{Finder: c.Finder, machine: c.machine, inner: true}, &Function{Entry: target})
	g.limit = maxFirst
	if g.run() != nil {
		return false
	}
	first := false
	for _, n := range g.order {
		switch n.end {
		case returns:
			if n.state.vals[c.machine.result()] != (value{kind: argument}) {
				return false
			}
			first = true
		case tailCall, tailSame:
			return false
		}
	}
	c.first[target] = first
	return first
}

// shared reports whether the function at target is reached other than from this one.
func (g *graph) shared(target uint64) bool {
	if g.image.Entered == nil || g.image.Entered(target) {
		return true
	}
	own := func(pc uint64) bool {
		start, _, ok := g.image.Bounds(pc)
		entry, _, _ := g.image.Bounds(g.function.Entry)
		return ok && start == entry || g.insns[pc] != nil
	}
	returns, jumps := g.calls.library().InternalCallers(target)
	if len(returns) > 0 {
		return true
	}
	for _, from := range jumps {
		if !own(from) {
			return true
		}
	}
	return false
}

// findOpen finds the instructions that code outside of the function leads to. Calls of the
// function do not only pass them.
func (g *graph) findOpen() {
	all := g.addresses()
	var starts []uint64 // covering all of them with ranges of site.Window bytes
	for _, pc := range all {
		if n := len(starts); n == 0 || pc-starts[n-1] >= site.Window {
			starts = append(starts, pc)
		}
	}
	inside := map[uint64]bool{} // every byte of the instructions
	for _, pc := range all {
		for i := range uint64(g.insns[pc].size) {
			inside[pc+i] = true
		}
	}
	entered := map[uint64]bool{}
	for _, b := range g.calls.library().Branches(starts) {
		if inside[b.From] || !inside[b.To] || b.To == g.function.Entry {
			continue
		}
		if g.known(g.function.Entry) && !g.known(b.From) {
			continue // data, because the unwind tables cover the library's code
		}
		entered[b.To] = true
	}
	g.open = map[uint64]bool{}
	for _, pc := range all {
		if pc != g.function.Entry && (entered[pc] || g.image.Entered != nil && g.image.Entered(pc)) {
			g.spread(pc)
		}
	}
}

// known reports whether the unwind tables know the code at addr.
func (g *graph) known(addr uint64) bool {
	if g.image.Bounds == nil {
		return false
	}
	_, _, ok := g.image.Bounds(addr)
	return ok
}

// spread marks what can be reached from pc, whatever the state there is.
func (g *graph) spread(pc uint64) {
	in := g.insns[pc]
	if in == nil || g.open[pc] {
		return
	}
	g.open[pc] = true
	if in.flow == jump || in.flow == branch {
		g.spread(in.target)
	}
	if in.flow != jump && in.flow != ret && in.flow != halt {
		g.spread(pc + uint64(in.size))
	}
}
