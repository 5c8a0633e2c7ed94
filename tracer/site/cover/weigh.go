package cover

import "slices"

// Factors for the estimate of how often a branch goes a way.
const (
	likely      = 1.0
	calling     = 1.0 / 16   // on the way to each return it calls something, the other side does not
	failing     = 1.0 / 256  // it returns zero
	unusual     = 1.0 / 1024 // it ends in a jump through a pointer, or tags memory
	neverEnding = 1.0 / 4096 // it does not return
)

// weigh estimates how often a call passes each node.
func (g *graph) weigh() {
	likely := g.likelihood()
	for _, n := range g.order {
		n.weight = 0
	}
	g.entry.weight = 1
	for _, n := range g.topological() {
		sum := 0.0
		for _, e := range n.out {
			sum += likely(n, e)
		}
		for _, e := range n.out {
			e.to.weight += n.weight * likely(n, e) / sum
		}
	}
}

// likelihood returns a function that compares the ways from a node.
func (g *graph) likelihood() func(n *node, e edge) float64 {
	direct := g.withoutCalls()
	plain := g.usual()
	return func(n *node, e edge) float64 {
		switch {
		case !e.to.ends:
			return neverEnding
		case !e.to.result:
			return failing
		case plain[n] && !plain[e.to]:
			return unusual
		case direct[n] && !direct[e.to]:
			return calling
		}
		return likely
	}
}

// usual returns the nodes from which a call can return without a hook and without tagging memory.
func (g *graph) usual() map[*node]bool {
	return g.leading(func(n *node) bool { return n.end != goesOn && n.end != stops && n.insn.flow != indirect },
		func(n *node) bool { return !n.insn.rare })
}

// withoutCalls returns the nodes from which a block can be returned without a call.
func (g *graph) withoutCalls() map[*node]bool {
	return g.leading(func(n *node) bool { return (n.end == returns || n.end == tailSame) && n.result },
		func(n *node) bool { return n.insn.flow != call })
}

// leading returns the nodes that lead to an end through others that are passable.
func (g *graph) leading(end, passable func(*node) bool) map[*node]bool {
	all := map[*node]bool{}
	g.backwards(func(n *node) bool {
		if all[n] || !passable(n) {
			return false
		}
		all[n] = end(n) || slices.ContainsFunc(n.out, func(e edge) bool { return all[e.to] })
		return all[n]
	})
	return all
}

// topological returns the nodes such that each comes after those before it, but for loops.
func (g *graph) topological() []*node {
	var post []*node
	seen := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		seen[n] = true
		for _, e := range n.out {
			if !seen[e.to] {
				visit(e.to)
			}
		}
		post = append(post, n)
	}
	visit(g.entry)
	for i, j := 0, len(post)-1; i < j; i, j = i+1, j-1 {
		post[i], post[j] = post[j], post[i]
	}
	return post
}

// likeliest returns the nodes of the call that takes the likelier side of each branch.
func (g *graph) likeliest() []*node {
	var way []*node
	seen := map[*node]bool{}
	likely := g.likelihood()
	for n := g.entry; n != nil && !seen[n]; {
		seen[n] = true
		way = append(way, n)
		var best *node
		score := -1.0
		for _, e := range n.out {
			s := likely(n, e)
			if seen[e.to] {
				s /= 2
			}
			if s > score {
				best, score = e.to, s
			}
		}
		n = best
	}
	return way
}
