package calltree

import "rtrace-bpf/trace"

// Overhead is what an allocator is taken to need for a block beside its bytes, as
// rtrace-calltree takes it. Shares of bytes include it.
const Overhead = 8

// Sum is how much was allocated.
type Sum struct {
	Calls uint64
	Bytes uint64 // without Overhead
}

func (s *Sum) add(o Sum) {
	s.Calls += o.Calls
	s.Bytes += o.Bytes
}

// cost is Bytes with Overhead. It is no integer, since sums of sizes may be as
// large as one.
func (s Sum) cost() float64 { return float64(s.Bytes) + Overhead*float64(s.Calls) }

// Node is a function, a library or the traced function.
type Node struct {
	Sum             // of all that was allocated through it, each allocation once
	Name     string // the whole
	Function string // with its parameters; empty if it is a library or joined
	Place    string // "in LIBRARY" or "at FILE:LINE", of Function
	File     string // the library or source file; empty of traced functions
	// Children and Parents are the calls that the node makes, and those that
	// lead to it, in the order of their appearance. A node may call itself.
	Children []*Edge
	Parents  []*Edge
	// End says that it is at an end of a stack: it calls nothing or nothing
	// calls it.
	End bool
	// Own is how much was allocated through the node for what was allocated
	// through its children; 1 without children.
	Own Ratio
	// Index numbers the nodes from 0 in the order of their appearance.
	Index int
	// Trimmed marks what Trim took out.
	Trimmed bool

	last int // ID of the trace that was counted last
}

// Ratio holds a ratio of bytes and one of numbers of calls.
type Ratio struct{ Bytes, Calls float64 }

// Edge says that one node called another.
type Edge struct {
	Sum           // of what was allocated through it, each allocation once
	Parent, Child *Node

	last int // ID of the trace that was counted last
}

// Trace is a distinct way to allocations.
type Trace struct {
	Sum
	ID    int     // counted from 1
	Top   uint64  // the highest Call.ID
	Nodes []*Node // from the innermost
}

// Tree is what a Builder makes.
type Tree struct {
	Sum    // of all traces
	Nodes  []*Node
	Traces []Trace
	// Ignored counts the distinct frames that became no node.
	Ignored int
}

// Shares returns which part of the whole is in a sum, in percent: of the bytes
// with Overhead, and of the calls.
func (t *Tree) Shares(s Sum) (bytes, calls float64) {
	if t.Calls == 0 {
		return 0, 0
	}
	return 100 * s.cost() / t.cost(), 100 * float64(s.Calls) / float64(t.Calls)
}

// treeBuilder makes a tree of traces.
type treeBuilder struct {
	names  namer
	tree   *Tree
	byName map[string]*Node
	edges  map[[2]*Node]*Edge

	path  []name
	nodes []*Node
}

// add adds what allocations have in common.
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

// step goes a frame outward, and says whether that is a node.
func (t *treeBuilder) step(n name) bool {
	if n.text == "" {
		t.tree.Ignored++
		return false
	}
	t.path = append(t.path, n)
	return true
}

// count makes a trace of the path.
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

// node returns the node with a name.
func (t *treeBuilder) node(n *name) *Node {
	if got, ok := t.byName[n.text]; ok {
		return got
	}
	got := &Node{Name: n.text, Function: n.function, Place: n.place, File: n.file, Index: len(t.tree.Nodes)}
	t.byName[n.text] = got
	t.tree.Nodes = append(t.tree.Nodes, got)
	return got
}

// edge returns the edge between two nodes. Both list it by when one of them was
// passed through first, from the innermost.
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

// finish fills in what is known once all traces are counted.
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
