package profile

import (
	"cmp"
	"math"
	"slices"

	"rtrace-bpf/internal/analysis/sites"
)

// Graph is the call graph of the allocations.
//
// A function, and a call of one function by another, counts once for each stack
// that contains it. With recursion, Total is therefore still the amount
// allocated while the function was on the stack.
type Graph struct {
	Nodes []*Node // the largest Total first; of equal ones, outer functions first
	Usage         // of all allocations
}

// Node is a function, or with View.Addresses a place in one.
type Node struct {
	Number            int // from 1, in the order of Graph.Nodes
	Frame             sites.Frame
	Self, Total       Usage
	Parents, Children []*Edge // the largest first

	stack int // the last stack that was counted
	outer int // smallest number of frames outside of it
}

// Edge is a call of one function by another.
type Edge struct {
	Parent, Child *Node
	Usage

	stack int
}

// Graph returns the call graph.
func (p *Profile) Graph(v View) *Graph {
	b := builder{nodes: make(map[string]*Node), edges: make(map[[2]*Node]*Edge)}
	p.each(0, v.Addresses, b.add)
	g := &b.graph
	slices.SortFunc(g.Nodes, func(a, b *Node) int {
		return cmp.Or(v.compare(&a.Total.Allocated, &b.Total.Allocated), cmp.Compare(a.outer, b.outer), compareNodes(a, b))
	})
	for i, n := range g.Nodes {
		n.Number = i + 1
	}
	compareEdges := func(a, b *Edge) int {
		return cmp.Or(v.compare(&a.Allocated, &b.Allocated), cmp.Compare(a.Parent.Number, b.Parent.Number), cmp.Compare(a.Child.Number, b.Child.Number))
	}
	for _, n := range g.Nodes {
		slices.SortFunc(n.Parents, compareEdges)
		slices.SortFunc(n.Children, compareEdges)
	}
	return g
}

func compareNodes(a, b *Node) int {
	return compareFrames([]sites.Frame{a.Frame}, []sites.Frame{b.Frame})
}

// builder builds a Graph, stack by stack.
type builder struct {
	graph  Graph
	nodes  map[string]*Node
	edges  map[[2]*Node]*Edge
	stacks int
	key    []byte
}

func (b *builder) add(frames []sites.Frame, u *Usage) {
	b.stacks++
	b.graph.Add(u)
	var child *Node
	for i := range frames {
		n := b.node(&frames[i])
		n.outer = min(n.outer, len(frames)-1-i)
		if child == nil {
			n.Self.Add(u)
		} else {
			b.edge(n, child, u)
		}
		if n.stack != b.stacks {
			n.stack = b.stacks
			n.Total.Add(u)
		}
		child = n
	}
}

func (b *builder) node(f *sites.Frame) *Node {
	b.key = f.AppendKey(b.key[:0])
	n := b.nodes[string(b.key)]
	if n == nil {
		n = &Node{Frame: *f, outer: math.MaxInt}
		b.nodes[string(b.key)] = n
		b.graph.Nodes = append(b.graph.Nodes, n)
	}
	return n
}

func (b *builder) edge(parent, child *Node, u *Usage) {
	e := b.edges[[2]*Node{parent, child}]
	if e == nil {
		e = &Edge{Parent: parent, Child: child}
		b.edges[[2]*Node{parent, child}] = e
		parent.Children = append(parent.Children, e)
		child.Parents = append(child.Parents, e)
	}
	if e.stack != b.stacks {
		e.stack = b.stacks
		e.Add(u)
	}
}
