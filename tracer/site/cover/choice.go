package cover

import (
	"cmp"
	"slices"

	"rtrace-bpf/tracer/site"
)

// scale turns weights into capacities. Each site costs at least perSite, so that of equally
// frequent sites the fewer ones win.
const (
	scale   = 1e6
	perSite = 16
)

// choice chooses the sites of a graph.
type choice struct {
	*graph
	costs  Costs
	spots  []*spot // ascending
	index  map[uint64]int
	usable locationSet // places that a probe can read
	// present are the instructions that have a breakpoint anyway.
	present map[uint64]bool
}

// spot is an instruction on a path that may return a block.
type spot struct {
	pc     uint64
	insn   *insn
	nodes  []*node // all with this address
	weight float64
	depth  int64
	args   []Place // nil if they are not all known
	frame  Place   // see Site.Frame
	link   Place   // see Site.Link
	price  int     // of a hit; 0 if no probe can sit here
}

// rounds is how often the sites are chosen again, with the breakpoints that the notes of the
// round before have put.
const rounds = 3

// plan returns the cheapest plan.
func (c *choice) plan() (*Plan, error) {
	c.survey()
	if !c.entry.result {
		return nil, c.unproved(c.entry.pc, "it never returns a block")
	}
	var best []Site
	for range rounds {
		sites, err := c.reports()
		if err != nil {
			return nil, err
		}
		notes, err := c.notes(sites)
		if err != nil {
			return nil, err
		}
		sites = append(sites, notes...)
		if best == nil || c.cost(sites) < c.cost(best) {
			best = sites
		}
		c.present = map[uint64]bool{}
		for _, x := range notes {
			c.present[x.Addr] = true
		}
	}
	slices.SortFunc(best, func(a, b Site) int { return cmp.Compare(a.Addr, b.Addr) })
	if err := c.worthwhile(best); err != nil {
		return nil, err
	}
	p := &Plan{Sites: best}
	c.describe(p)
	return p, nil
}

// survey collects the spots.
func (c *choice) survey() {
	c.usable = c.machine.readable().or(c.reloaded())
	c.index = map[uint64]int{}
	nodes := map[uint64][]*node{}
	for _, n := range c.order {
		nodes[n.pc] = append(nodes[n.pc], n)
	}
	for _, pc := range c.addresses() {
		if !slices.ContainsFunc(nodes[pc], func(n *node) bool { return n.result }) {
			continue
		}
		s := &spot{pc: pc, insn: c.insns[pc], nodes: nodes[pc]}
		s.depth, _ = s.nodes[0].state.depth(c.machine)
		s.price = c.price(s)
		for _, n := range s.nodes {
			s.weight += n.weight
			if d, _ := n.state.depth(c.machine); d != s.depth {
				s.price = 0
			}
		}
		s.args = c.places(s)
		s.frame, s.link = c.saved(s, c.machine.framePointer()), c.saved(s, c.machine.link())
		c.index[pc] = len(c.spots)
		c.spots = append(c.spots, s)
	}
}

// price returns the price of a breakpoint on s.
func (c *choice) price(s *spot) int {
	switch {
	case c.open[s.pc]:
		return 0
	case s.insn.cost == site.Emulated:
		return c.costs.Break
	case s.insn.cost == site.SingleStep && (s.insn.flow == indirect || s.insn.flow == ret):
		return c.costs.Step
	}
	return 0
}

// reloaded returns the words of the frame that the function loads itself. Others may be arguments
// of a call, which belong to the callee.
func (c *choice) reloaded() (s locationSet) {
	for _, n := range c.order {
		state := n.state
		st := step{state: &state, machine: c.machine, factors: c.function.Factors, from: identity(), pc: int64(n.pc)}
		for i := range n.insn.effects {
			e := &n.insn.effects[i]
			for _, o := range []operand{e.a, e.b} {
				if o.kind == memory {
					if l, ok := st.word(o); ok {
						s.add(l)
					}
				}
			}
			st.effect(e)
		}
	}
	return s
}

// places returns where the arguments are at s, or nil if one is not known.
func (c *choice) places(s *spot) []Place {
	var places []Place
	f := c.function.Factors
	for _, arg := range c.function.Args {
		p, ok := c.place(s, value{kind: argument, n: int64(arg)}, c.machine.arguments()[arg])
		if !ok && f[0] != f[1] && (arg == f[0] || arg == f[1]) {
			p, ok = c.place(s, value{kind: product}, c.machine.result())
			p.Product = true
		}
		if !ok {
			return nil
		}
		places = append(places, p)
	}
	return places
}

// place returns a place that holds v in all nodes of s that may return a block.
func (c *choice) place(s *spot, v value, preferred location) (Place, bool) {
	held := c.usable
	for _, n := range s.nodes {
		if !n.result {
			continue
		}
		for l := range held.all {
			if n.state.vals[l] != v {
				held.remove(l)
			}
		}
	}
	return c.pick(s, held, preferred)
}

// pick returns one of the locations as a place.
func (c *choice) pick(s *spot, held locationSet, preferred location) (Place, bool) {
	if held.has(preferred) {
		return c.placeOf(s, preferred), true
	}
	for l := range held.all {
		return c.placeOf(s, l), true
	}
	return Place{}, false
}

func (c *choice) placeOf(s *spot, l location) Place {
	if l < registers {
		return Place{Reg: uint8(l)}
	}
	return Place{Reg: site.NoReg, Stack: true, Offset: int(l.offset() + s.depth)}
}

// saved returns where the value is at s that a register had at the entry, signed or not.
func (c *choice) saved(s *spot, r location) Place {
	if r == nowhere {
		return Place{Reg: site.NoReg}
	}
	held := c.usable
	held.add(r)
	for _, n := range s.nodes {
		if !n.result {
			continue
		}
		for l := range held.all {
			if v := n.state.vals[l]; v.kind != initial || v.loc != r {
				held.remove(l)
			}
		}
	}
	if p, ok := c.pick(s, held, r); ok {
		return p
	}
	return Place{Reg: site.NoReg}
}

// block returns where the value is that calls at s return, if they take an edge that via selects. A call that
// returns zero has a zero there.
func (c *choice) block(s *spot, via func(e edge) bool) (Place, bool) {
	held := c.usable
	for _, n := range s.nodes {
		if via == nil {
			held = held.and(n.holds)
			continue
		}
		for _, e := range n.out {
			if via(e) {
				held = held.and(n.state.withEqual(n.before(e.to.holds)))
			}
		}
	}
	return c.pick(s, held, c.machine.result())
}

// returnable reports whether a return probe can share a site at s.
func (c *choice) returnable(s *spot) bool {
	if s.depth != 0 || s.insn.flow == branch {
		return false
	}
	link := c.machine.link()
	return link == nowhere || !slices.ContainsFunc(s.nodes, func(n *node) bool {
		return n.state.vals[link] != value{kind: initial, loc: link}
	})
}

// mayAbort reports whether s is a branch to where no call returns from.
func (s *spot) mayAbort() bool {
	return s.insn.flow == branch && slices.ContainsFunc(s.nodes, func(n *node) bool {
		return slices.ContainsFunc(n.out, func(e edge) bool { return !e.to.ends })
	})
}

// before returns the site at s that counts whichever way the call goes on, and its price.
func (c *choice) before(s *spot) (Site, int) {
	if s.price == 0 || s.mayAbort() {
		return Site{}, 0
	}
	x := Site{Addr: s.pc, Args: s.args, StackAdjust: int(s.depth), Stepped: s.insn.cost != site.Emulated, Frame: s.frame, Link: s.link}
	block, ok := c.block(s, nil)
	switch {
	case ok && s.args != nil:
		x.Block, x.Role = block, Report
		return x, s.price
	case s.args != nil && c.returnable(s):
		x.Role = Return
		return x, s.price + c.costs.Return
	case ok:
		x.Block, x.Role = block, Finish
		return x, s.price + c.costs.Break
	}
	return Site{}, 0
}

// on returns the site at s that counts if the branch there is taken, or if it is not.
func (c *choice) on(s *spot, taken bool) (Site, int) {
	if s.price == 0 || s.insn.flow != branch {
		return Site{}, 0
	}
	block, ok := c.block(s, func(e edge) bool { return e.taken == taken })
	if !ok {
		return Site{}, 0
	}
	x := Site{Addr: s.pc, Args: s.args, StackAdjust: int(s.depth), Block: block, When: s.insn.when, Frame: s.frame, Link: s.link}
	if !taken {
		x.When.Not = !x.When.Not
	}
	if s.args == nil {
		x.Role = Finish
		return x, s.price + c.costs.Break
	}
	return x, s.price
}

func (c *choice) capacity(s *spot, cost int) int64 {
	if cost == 0 {
		return forever
	}
	if c.present[s.pc] {
		cost -= s.price
	}
	return int64(s.weight*float64(cost)*scale) + perSite
}

// cutArc is a place where a path can be cut.
type cutArc struct {
	from, to int
	site     Site
}

// reports returns the sites that report: a minimum cut between the entry and the returns. Arcs
// back have no bound, so that no path is cut twice.
func (c *choice) reports() ([]Site, error) {
	source, sink := 2*len(c.spots), 2*len(c.spots)+1
	net := newNetwork(sink + 1)
	var arcs []cutArc
	add := func(from, to int, s *spot, x Site, cost int) {
		net.arc(from, to, c.capacity(s, cost), forever)
		arcs = append(arcs, cutArc{from, to, x})
	}
	net.arc(source, 2*c.index[c.entry.pc], forever, forever)
	for i, s := range c.spots {
		x, cost := c.before(s)
		add(2*i, 2*i+1, s, x, cost)
		type way struct {
			to    int
			taken bool
		}
		seen := map[way]bool{}
		for _, n := range s.nodes {
			if n.end != goesOn && n.result {
				net.arc(2*i+1, sink, forever, 0)
			}
			for _, e := range n.out {
				if w := (way{c.index[e.to.pc], e.taken}); n.result && e.to.result && !seen[w] {
					seen[w] = true
					x, cost := c.on(s, e.taken)
					add(2*i+1, 2*w.to, s, x, cost)
				}
			}
		}
	}
	side, capacity := net.cut(source, sink)
	if capacity >= forever {
		return nil, c.explain()
	}
	var sites []Site
	for _, a := range arcs {
		if side[a.from] && !side[a.to] {
			a.site.Insn = site.Text(c.image.Arch, c.image.at(a.site.Addr), a.site.Addr)
			if a.site.Role == Finish {
				a.site.Args = nil
			}
			sites = append(sites, a.site)
		}
	}
	return sites, nil
}

// notes returns the sites that note the arguments for those that only know the block.
func (c *choice) notes(sites []Site) ([]Site, error) {
	source, sink := 2*len(c.spots), 2*len(c.spots)+1
	net := newNetwork(sink + 1)
	net.arc(source, 2*c.index[c.entry.pc], forever, 0)
	c.present = map[uint64]bool{}
	for _, x := range sites {
		c.present[x.Addr] = true
	}
	for i, s := range c.spots {
		cost := 0
		if s.args != nil {
			cost = s.price
		}
		net.arc(2*i, 2*i+1, c.capacity(s, cost), 0)
		for _, n := range s.nodes {
			for _, e := range n.out {
				if e.to.result {
					net.arc(2*i+1, 2*c.index[e.to.pc], forever, 0)
				}
			}
		}
	}
	finishes := false
	for _, x := range sites {
		if x.Role == Finish {
			finishes = true
			net.arc(2*c.index[x.Addr], sink, forever, 0)
		}
	}
	if !finishes {
		return nil, nil
	}
	side, capacity := net.cut(source, sink)
	if capacity >= forever {
		return nil, c.explain()
	}
	var notes []Site
	for i, s := range c.spots {
		if side[2*i] && !side[2*i+1] {
			notes = append(notes, Site{
				Addr: s.pc, Insn: site.Text(c.image.Arch, c.image.at(s.pc), s.pc), Role: Note,
				Args: s.args, StackAdjust: int(s.depth), Stepped: s.insn.cost != site.Emulated, Frame: s.frame, Link: s.link,
			})
		}
	}
	return notes, nil
}
