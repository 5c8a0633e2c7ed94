package cover

import (
	"cmp"
	"fmt"
	"slices"

	"rtrace-bpf/tracer/site"
)

// Bounds of the interpretation, in instructions and in states of instructions.
const (
	maxInsns = 1 << 12
	maxNodes = 1 << 14
)

// node is an instruction together with a state. An instruction has several nodes if it can be
// reached with different values known to be zero.
type node struct {
	pc    uint64
	insn  *insn
	state state // before the instruction
	from  *origins
	out   []edge
	end   end

	may    locationSet // may hold the value that will be returned
	holds  locationSet // holds it on all paths that return
	result bool        // a path may return something that is not zero
	ends   bool        // a path returns
	weight float64     // how often a call comes here, estimated
}

// edge leads to the next node.
type edge struct {
	to    *node
	taken bool // the branch was taken
}

// end is how a path ends at a node.
type end uint8

const (
	goesOn   end = iota
	returns      // with the value in the machine's result
	tailCall     // in a jump to a function that returns something unknown
	tailSame     // in a jump to a function that returns its first argument
	stops        // without a return
)

// nodeKey identifies a node.
type nodeKey struct {
	pc   uint64
	zero locationSet
}

// graph is the control-flow graph of a function.
type graph struct {
	image    *Image
	machine  machine
	function *Function
	limit    int // of instructions
	insns    map[uint64]*insn
	nodes    map[nodeKey]*node
	order    []*node // depth first
	entry    *node
	keep     map[uint64]locationSet // whose zeros make different nodes, by instruction
	calls    *callees
	tails    map[uint64]bool // whether a function that is jumped to is shared
	open     map[uint64]bool // instructions that are reached from outside of the function
	queue    []*node
	queued   map[*node]bool
	after    state // scratch of follow
}

// interpret builds the graph of f.
func (d *Finder) interpret(m machine, f *Function) (*graph, error) {
	g := newGraph(&callees{Finder: d, machine: m}, f)
	// The first round finds out which locations matter for what the function returns.
	if err := g.run(); err != nil {
		return nil, err
	}
	g.traceMay()
	g.keep = map[uint64]locationSet{}
	for _, n := range g.order {
		g.keep[n.pc] = g.keep[n.pc].or(n.may)
	}
	if err := g.run(); err != nil {
		return nil, err
	}
	g.findOpen()
	return g, nil
}

func newGraph(c *callees, f *Function) *graph {
	return &graph{
		image: c.image, machine: c.machine, function: f, limit: maxInsns,
		insns: map[uint64]*insn{}, calls: c, tails: map[uint64]bool{},
	}
}

func (g *graph) run() error {
	g.nodes, g.queued = map[nodeKey]*node{}, map[*node]bool{}
	var err error
	if g.entry, err = g.reach(g.function.Entry, newState(g.machine)); err != nil {
		return err
	}
	for len(g.queue) > 0 {
		n := g.queue[len(g.queue)-1]
		g.queue = g.queue[:len(g.queue)-1]
		g.queued[n] = false
		if err := g.follow(n, false); err != nil {
			g.queue = nil
			return err
		}
	}
	return g.link()
}

// link adds the edges of the final states and puts the nodes into order.
func (g *graph) link() error {
	g.order = nil
	seen := map[*node]bool{}
	var visit func(n *node) error
	visit = func(n *node) error {
		seen[n] = true
		g.order = append(g.order, n)
		if err := g.follow(n, true); err != nil {
			return err
		}
		for _, e := range n.out {
			if !seen[e.to] {
				if err := visit(e.to); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return visit(g.entry)
}

// reach merges a state into the node that it belongs to, and queues the node if that changed it.
func (g *graph) reach(pc uint64, s *state) (*node, error) {
	key := nodeKey{pc, s.zero.and(g.keep[pc])}
	n := g.nodes[key]
	if n == nil {
		if len(g.nodes) == maxNodes {
			return nil, g.unproved(pc, "the function has too many paths")
		}
		in, err := g.insn(pc)
		if err != nil {
			return nil, err
		}
		n = &node{pc: pc, insn: in, state: *s}
		g.nodes[key] = n
	} else {
		a, _ := n.state.depth(g.machine)
		if b, ok := s.depth(g.machine); !ok || a != b {
			return nil, g.unproved(pc, "the stack has different depths")
		}
		if !n.state.meet(s, int64(pc)) {
			return n, nil
		}
	}
	if !g.queued[n] {
		g.queued[n] = true
		g.queue = append(g.queue, n)
	}
	return n, nil
}

func (g *graph) insn(pc uint64) (*insn, error) {
	if in := g.insns[pc]; in != nil {
		return in, nil
	}
	code := g.image.at(pc)
	if len(code) == 0 {
		return nil, &Unproved{Addr: pc, Reason: "the path leads out of the code"}
	}
	if len(g.insns) == g.limit {
		return nil, g.unproved(pc, "the function has too many instructions")
	}
	in := g.machine.decode(code, pc)
	g.insns[pc] = &in
	return &in, nil
}

func (g *graph) unproved(pc uint64, reason string) error {
	return &Unproved{Addr: pc, Insn: site.Text(g.image.Arch, g.image.at(pc), pc), Reason: reason}
}

// follow applies the instruction of n and reaches the nodes after it. If link is set, the nodes
// are all there, and follow adds the edges.
func (g *graph) follow(n *node, link bool) error {
	s := &g.after
	*s = n.state
	from := identity()
	st := step{state: s, machine: g.machine, factors: g.function.Factors, from: from, pc: int64(n.pc)}
	if reason := st.apply(n.insn); reason != "" {
		return g.unproved(n.pc, reason)
	}
	n.from, n.out, n.end = from, nil, goesOn
	w := walk{graph: g, node: n, link: link}
	after := n.pc + uint64(n.insn.size)
	switch n.insn.flow {
	case ret:
		if depth, _ := s.depth(g.machine); depth != 0 {
			return g.unproved(n.pc, "it returns with another stack pointer")
		}
		n.end = returns
		if g.calls.inner && s.vals[g.machine.result()] != (value{kind: argument}) {
			return errNotFirst
		}
		return nil
	case halt:
		n.end = stops
		return nil
	case indirect:
		return w.indirect(s)
	case jump:
		return w.jump(n.insn.target, s)
	case call:
		c := g.calls.about(n.insn.target, s)
		if c.NoReturn {
			n.end = stops
			return nil
		}
		st.called(c)
		return w.to(after, s, false)
	case branch:
		return w.branch(after, s)
	}
	return w.to(after, s, false)
}

// walk adds the edges of a node.
type walk struct {
	*graph
	node *node
	link bool
}

// to continues at pc.
func (w walk) to(pc uint64, s *state, taken bool) error {
	if w.image.Bounds != nil && !taken {
		// A call at the end of a function does not return: no path runs on into what follows.
		if _, end, ok := w.image.Bounds(w.node.pc); ok && pc >= end && w.node.insn.flow != jump {
			if w.node.insn.flow != call {
				return w.unproved(w.node.pc, "the path runs past the end of the function")
			}
			w.node.end = stops
			return nil
		}
	}
	if w.link {
		key := nodeKey{pc, s.zero.and(w.keep[pc])}
		w.node.out = append(w.node.out, edge{w.nodes[key], taken})
		return nil
	}
	_, err := w.reach(pc, s)
	return err
}

// branch continues on both sides, with what each of them shows.
func (w walk) branch(after uint64, s *state) error {
	in := w.node.insn
	for _, taken := range []bool{false, true} {
		t := *s
		if !t.decide(in, taken, w.function.Factors) {
			continue // no call goes this way
		}
		pc := after
		if taken {
			pc = in.target
			if w.leaves(pc, &t) {
				return w.unproved(w.node.pc, "it branches to another function")
			}
		}
		if err := w.to(pc, &t, taken); err != nil {
			return err
		}
	}
	return nil
}

// decide records what it shows that a branch was taken, or not. It returns false if that cannot be.
func (s *state) decide(in *insn, taken bool, factors [2]int) bool {
	switch {
	case in.zero.kind == register:
		return s.learn(s.vals[in.zero.reg], taken != in.not)
	case in.zero.kind == low:
		return s.learn(s.vals[in.zero.reg].low(), taken != in.not)
	case in.equal:
		return s.compared(taken != in.not, factors)
	case in.when.Kind == BitSet:
		v := s.vals[in.when.Reg]
		return v.kind != number || taken == (v.n>>in.when.Bit&1 == 1 != in.when.Not)
	}
	return true
}

// jump continues at the target, or ends the path if that is another function.
func (w walk) jump(target uint64, s *state) error {
	c, known := w.calls.named(target)
	switch {
	case known && c.NoReturn:
		w.node.end = stops
		return nil
	case known || w.leaves(target, s):
		if depth, _ := s.depth(w.machine); depth != 0 {
			return w.unproved(w.node.pc, "it jumps to another function with its frame on the stack")
		}
		w.node.end = tailCall
		if c.First || !known && w.calls.returnsFirst(target) {
			w.node.end = tailSame
		}
		return nil
	}
	return w.to(target, s, true)
}

// indirect handles jumps through a pointer.
func (w walk) indirect(s *state) error {
	depth, _ := s.depth(w.machine)
	if slot := w.node.insn.slot; slot != 0 && w.image.Slot != nil {
		if to, ok := w.image.Slot(slot); ok {
			return w.jump(to, s)
		}
	}
	if depth != 0 {
		return w.unproved(w.node.pc, "it jumps to an unknown address")
	}
	// Compilers empty the frame before they leave the function, and a jump table in a function
	// without a frame looks the same: nothing is assumed about what follows.
	w.node.end = tailCall
	return nil
}

// leaves reports whether a jump leads to another function, whose code others share.
func (w walk) leaves(target uint64, s *state) bool {
	if depth, _ := s.depth(w.machine); depth != 0 || target == w.function.Entry {
		return target == w.function.Entry
	}
	if w.image.at(target) == nil {
		return true
	}
	if w.image.Bounds == nil {
		return false
	}
	start, _, ok := w.image.Bounds(target)
	if !ok || start != target {
		return false
	}
	shared, known := w.tails[target]
	if !known {
		shared = w.shared(target)
		w.tails[target] = shared
	}
	return shared
}

// at returns the code from pc on.
func (im *Image) at(pc uint64) []byte {
	if pc < im.Base || pc-im.Base >= uint64(len(im.Code)) {
		return nil
	}
	return im.Code[pc-im.Base:]
}

// addresses returns the instructions of the graph, ascending.
func (g *graph) addresses() []uint64 {
	var all []uint64
	for _, n := range g.order {
		all = append(all, n.pc)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// String describes the graph for tests.
func (g *graph) String() string {
	nodes := slices.Clone(g.order)
	slices.SortFunc(nodes, func(a, b *node) int { return cmp.Compare(a.pc, b.pc) })
	var text []byte
	for _, n := range nodes {
		text = fmt.Appendf(text, "%x %-40s result %v ends %v weight %.4f holds %v:", n.pc,
			site.Text(g.image.Arch, g.image.at(n.pc), n.pc), n.result, n.ends, n.weight, slices.Collect(n.holds.all))
		for _, e := range n.out {
			text = fmt.Appendf(text, " %x", e.to.pc)
		}
		text = append(text, '\n')
	}
	return string(text)
}
