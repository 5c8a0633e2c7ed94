package calltree

import "slices"

// TrimEnds removes the chains at the ends of the tree: nodes that nothing calls
// and that call one other node, and nodes that call nothing and that one other
// node calls. It repeats that for the nodes that become such ends. Sums do not
// change.
func (t *Tree) TrimEnds() {
	for _, n := range t.Nodes {
		for !n.Trimmed && len(n.Parents) == 0 && len(n.Children) == 1 {
			next := n.Children[0].Child
			cut(n)
			n = next
		}
		for !n.Trimmed && len(n.Children) == 0 && len(n.Parents) == 1 {
			next := n.Parents[0].Parent
			cut(n)
			n = next
		}
	}
}

// TrimMiddles removes the nodes with exactly one caller and one callee, and
// connects these two directly. Sums do not change.
func (t *Tree) TrimMiddles() {
	for _, n := range t.Nodes {
		if n.Trimmed || len(n.Parents) != 1 || len(n.Children) != 1 {
			continue
		}
		in, out := n.Parents[0], n.Children[0]
		parent, child := in.Parent, out.Child
		if parent == child {
			continue
		}
		cut(n)
		for _, e := range parent.Children {
			if e.Child == child {
				e.add(in.Sum)
				parent = nil
				break
			}
		}
		if parent != nil {
			e := &Edge{Sum: in.Sum, Parent: parent, Child: child}
			parent.Children = append(parent.Children, e)
			child.Parents = append(child.Parents, e)
		}
	}
}

// cut removes a node and its edges.
func cut(n *Node) {
	n.Trimmed = true
	mine := func(e *Edge) bool { return e.Parent == n || e.Child == n }
	for _, e := range n.Children {
		e.Child.Parents = slices.DeleteFunc(e.Child.Parents, mine)
	}
	for _, e := range n.Parents {
		e.Parent.Children = slices.DeleteFunc(e.Parent.Children, mine)
	}
	n.Children, n.Parents = nil, nil
}
