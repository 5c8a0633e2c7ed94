package calltree

import "rtrace-bpf/trace"

// Overhead is the assumed cost of a block in addition to its size, in bytes, as
// in rtrace-calltree. Shares of bytes include it.
const Overhead = 8

// Sum is an amount of allocations.
type Sum struct {
	Calls uint64
	Bytes uint64 // without Overhead
}

func (s *Sum) add(o Sum) {
	s.Calls += o.Calls
	s.Bytes += o.Bytes
}

// cost returns Bytes with Overhead. It is a float because the sum may not fit
// into 64 bits.
func (s Sum) cost() float64 { return float64(s.Bytes) + Overhead*float64(s.Calls) }

// Node is a function, a library or the traced function.
type Node struct {
	Sum             // of all allocations through it, each counted once
	Name     string // the whole name
	Function string // with its parameters; empty for a library or a joined node
	Place    string // "in LIBRARY" or "at FILE:LINE", of Function
	File     string // the library or source file; empty for traced functions
	// Children and Parents are the calls that the node makes and the calls that
	// lead to it, in order of appearance. A node may call itself.
	Children []*Edge
	Parents  []*Edge
	// End reports that the node is at an end of a stack: it calls nothing or
	// nothing calls it.
	End bool
	// Own is the ratio of the amount allocated through the node to the sum of
	// the amounts allocated through its children; 1 without children.
	Own Ratio
	// Index numbers the nodes from 0 in order of appearance.
	Index int
	// Trimmed marks the nodes that TrimEnds and TrimMiddles took out.
	Trimmed bool

	last int // ID of the last trace that was counted
}

// Ratio holds a ratio of bytes and one of numbers of calls.
type Ratio struct{ Bytes, Calls float64 }

// Edge is a call of one node by another.
type Edge struct {
	Sum           // of all allocations through it, each counted once
	Parent, Child *Node

	last int // ID of the last trace that was counted
}

// Trace is a distinct path of nodes that led to allocations.
type Trace struct {
	Sum
	ID    int     // counted from 1
	Top   uint64  // the highest Call.ID
	Nodes []*Node // the innermost first, each once
}

// Tree is the result of a Builder.
type Tree struct {
	Sum    // of all traces
	Nodes  []*Node
	Traces []Trace
	// Ignored counts the frames of distinct stacks that did not become nodes.
	Ignored int
}

// Shares returns the share of a sum in the whole tree, in percent: of the bytes
// with Overhead, and of the calls.
func (t *Tree) Shares(s Sum) (bytes, calls float64) {
	if t.Calls == 0 {
		return 0, 0
	}
	return 100 * s.cost() / t.cost(), 100 * float64(s.Calls) / float64(t.Calls)
}

// treeBuilder builds a tree from the sums of a Builder.
type treeBuilder struct {
	names  namer
	tree   *Tree
	byName map[string]*Node
	edges  map[[2]*Node]*Edge

	path  []name
	nodes []*Node
}

// add adds the allocations of one sum, which have the given stack and caller.
func (t *treeBuilder) add(b *Builder, s *sum, stack *trace.Stack, caller *trace.Caller) {
	o := &b.opts
	t.path = t.path[:0]
	switch traced := b.traced(&s.key); {
	case len(o.OnlyArgs) > 0 && (s.argument == 0 || !prefixed(traced, o.OnlyArgs)):
		return
	case t.names.ignore(traced):
	default:
		t.path = append(t.path, name{text: traced})
	}
	for i := range stack.Frames {
		if n := t.names.frame(s.pid, stack, i); t.step(n) && n.stop {
			break
		}
	}
	if *caller != (trace.Caller{}) {
		t.step(t.names.caller(caller))
	}
	included := len(o.Only) == 0
	for i := range t.path {
		included = included || prefixed(t.path[i].text, o.Only)
	}
	if included {
		t.count(Sum{s.calls, s.bytes}, s.top)
	}
}

// step extends the path by the next outer frame. It returns false if that frame
// is not a node.
func (t *treeBuilder) step(n name) bool {
	if n.text == "" {
		t.tree.Ignored++
		return false
	}
	t.path = append(t.path, n)
	return true
}

// count adds a trace for the current path.
func (t *treeBuilder) count(s Sum, top uint64) {
	tree := t.tree
	tree.add(s)
	tr := Trace{Sum: s, ID: len(tree.Traces) + 1, Top: top}
	t.nodes = t.nodes[:0]
	for i := range t.path {
		n := t.node(&t.path[i])
		if n.last != tr.ID {
			n.last = tr.ID
			n.add(s)
			tr.Nodes = append(tr.Nodes, n)
		}
		t.nodes = append(t.nodes, n)
	}
	for i := 1; i < len(t.nodes); i++ {
		if e := t.edge(t.nodes[i], t.nodes[i-1]); e.last != tr.ID {
			e.last = tr.ID
			e.add(s)
		}
	}
	tree.Traces = append(tree.Traces, tr)
}

// node returns the node with the given name, creating it if needed.
func (t *treeBuilder) node(n *name) *Node {
	if got, ok := t.byName[n.text]; ok {
		return got
	}
	got := &Node{Name: n.text, Function: n.function, Place: n.place, File: n.file, Index: len(t.tree.Nodes)}
	t.byName[n.text] = got
	t.tree.Nodes = append(t.tree.Nodes, got)
	return got
}

// edge returns the edge between two nodes, creating it if needed. Both nodes
// list their edges in order of first use, walking each stack from the innermost
// frame.
func (t *treeBuilder) edge(parent, child *Node) *Edge {
	at := [2]*Node{parent, child}
	if e, ok := t.edges[at]; ok {
		return e
	}
	e := &Edge{Parent: parent, Child: child}
	t.edges[at] = e
	parent.Children = append(parent.Children, e)
	child.Parents = append(child.Parents, e)
	return e
}

// finish fills in the fields that depend on all traces.
func (t *treeBuilder) finish() {
	for _, n := range t.tree.Nodes {
		n.End = len(n.Parents) == 0 || len(n.Children) == 0
		n.Own = Ratio{1, 1}
		var below Sum
		for _, e := range n.Children {
			below.add(e.Child.Sum)
		}
		if below.Bytes > 0 {
			n.Own.Bytes = float64(n.Bytes) / float64(below.Bytes)
		}
		if below.Calls > 0 {
			n.Own.Calls = float64(n.Calls) / float64(below.Calls)
		}
	}
}
