package cover

import (
	"cmp"
	"maps"
	"slices"
)

// prices returns the price of each breakpoint for an average call, by its address.
func (c *choice) prices(sites []Site) map[uint64]float64 {
	prices := map[uint64]float64{}
	for _, x := range sites {
		spot := c.spots[c.index[x.Addr]]
		price := spot.price
		if x.Role == Return {
			price += c.costs.Return
		}
		prices[x.Addr] = max(prices[x.Addr], float64(price)*spot.weight)
	}
	return prices
}

// cost returns the price of a plan for an average call.
func (c *choice) cost(sites []Site) (sum float64) {
	for _, p := range c.prices(sites) {
		sum += p
	}
	return sum
}

// worthwhile returns an error if the plan costs more than an entry and a return probe.
func (c *choice) worthwhile(sites []Site) error {
	if c.cost(sites) <= float64(c.costs.Break+c.costs.Return) {
		return nil
	}
	prices := c.prices(sites)
	dearest := slices.MaxFunc(sites, func(a, b Site) int { return cmp.Compare(prices[a.Addr], prices[b.Addr]) })
	return c.unproved(dearest.Addr, "a plan would cost more than entry and return, because of this site")
}

// describe adds what else is known about a plan.
func (c *choice) describe(p *Plan) {
	roles := map[uint64]Role{}
	for _, x := range p.Sites {
		roles[x.Addr] = x.Role
	}
	for _, n := range c.likeliest() {
		if role, ok := roles[n.pc]; ok {
			p.HotTraps++
			if role == Return {
				p.HotReturns++
			}
		}
	}
	calls := map[uint64]bool{}
	for _, n := range c.beforeReturns(roles) {
		switch {
		case n.end == stops:
		case n.insn.flow == call && n.insn.target == 0:
			p.Opaque = true
		case n.insn.flow == call:
			calls[n.insn.target] = true
		case n.end == tailCall && n.insn.target != 0:
			calls[n.insn.target] = true
		case n.end == tailCall:
			p.Opaque = true
		}
	}
	p.Calls = slices.Sorted(maps.Keys(calls))
}

// beforeReturns returns the nodes that a call can reach without passing a Return site.
func (c *choice) beforeReturns(roles map[uint64]Role) (reached []*node) {
	seen := map[*node]bool{c.entry: true}
	for queue := []*node{c.entry}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if role, ok := roles[n.pc]; ok && role == Return {
			continue
		}
		reached = append(reached, n)
		for _, e := range n.out {
			if !seen[e.to] {
				seen[e.to] = true
				queue = append(queue, e.to)
			}
		}
	}
	return reached
}

// explain finds a path on which there can be no site, and returns the instruction that stopped
// the proof.
func (c *choice) explain() error {
	path := c.uncovered()
	last := path[len(path)-1]
	known := slices.IndexFunc(path, func(s *spot) bool {
		_, ok := c.block(s, nil)
		return ok
	})
	lost := slices.IndexFunc(path, func(s *spot) bool { return s.args == nil })
	switch {
	case lost > 0 && (known < 0 || lost <= known):
		return c.unproved(path[lost-1].pc, "an argument is lost before the block is known")
	case known < 0:
		return c.unproved(last.pc, "it is not known where the block is before the function ends")
	case c.open[path[known].pc]:
		return c.unproved(path[known].pc, "other code of the library leads here")
	}
	return c.unproved(path[known].pc, "no instruction that the kernel emulates follows")
}

// uncovered returns a path from the entry to a return that no site cuts.
func (c *choice) uncovered() []*spot {
	type visit struct{ at, from int }
	start := c.index[c.entry.pc]
	seen := map[int]bool{start: true}
	queue := []visit{{start, -1}}
	for i := 0; i < len(queue); i++ {
		s := c.spots[queue[i].at]
		if _, cost := c.before(s); cost != 0 {
			continue
		}
		for _, n := range s.nodes {
			if n.end != goesOn && n.result {
				var path []*spot
				for j := i; j >= 0; j = queue[j].from {
					path = append(path, c.spots[queue[j].at])
				}
				slices.Reverse(path)
				return path
			}
			for _, e := range n.out {
				to, ok := c.index[e.to.pc]
				if _, cost := c.on(s, e.taken); ok && e.to.result && cost == 0 && !seen[to] {
					seen[to] = true
					queue = append(queue, visit{to, i})
				}
			}
		}
	}
	return []*spot{c.spots[start]}
}
