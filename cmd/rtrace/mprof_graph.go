package main

import (
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/internal/analysis/profile"
	"rtrace-bpf/internal/report/table"
)

// callGraph returns the table of the call graph, or a note that there is none.
func (r *mprofReport) callGraph() io.WriterTo {
	const title = "ALLOCATION CALL GRAPH"
	if !r.profile.HasStacks() {
		return titled{title, "", note("The trace has no stacks; without them there is no call graph.")}
	}
	g := r.profile.Graph(r.view())
	columns := []table.Column{{Title: "index", Left: true}}
	for _, group := range [...]string{"allocated", "unfreed"} {
		c := classColumns(group, 4)
		columns = append(columns, c[0], table.Column{Title: "count", Group: group})
		columns = append(columns, c[1:]...)
	}
	columns = append(columns,
		table.Column{Title: "bytes", Group: "itself", Gap: 4}, table.Column{Title: "count", Group: "itself"},
		table.Column{Title: "function", Left: true})
	t := table.New(columns...)
	t.Rule()
	for _, n := range g.Nodes {
		for _, e := range n.Parents {
			t.Row(r.graphCells("", &e.Usage, nil, "    "+r.callee(e, e.Parent))...)
		}
		t.Row(r.graphCells(fmt.Sprintf("[%d]", n.Number), &n.Total, &n.Self, r.node(n))...)
		for _, e := range n.Children {
			t.Row(r.graphCells("", &e.Usage, nil, "    "+r.callee(e, e.Child))...)
		}
		t.Rule()
	}
	return titled{title, fmt.Sprintf("(functions: %d)", len(g.Nodes)), t}
}

// graphCells returns a row: allocations through a function or one of its calls, and by
// itself.
func (r *mprofReport) graphCells(index string, u, self *profile.Usage, function string) []string {
	cells := []string{index}
	for _, s := range [...]*profile.Sums{&u.Allocated, &u.Unfreed} {
		n, bytes := s.Total()
		c := classCells(s, bytes)
		cells = append(cells, c[0], number(n))
		cells = append(cells, c[1:]...)
	}
	if self == nil {
		return append(cells, "", "", function)
	}
	n, bytes := self.Allocated.Total()
	return append(cells, number(bytes), number(n), function)
}

func (r *mprofReport) node(n *profile.Node) string {
	return fmt.Sprintf("%s [%d]", r.label(&n.Frame), n.Number)
}

// callee returns the name of the other end of a call.
func (r *mprofReport) callee(e *profile.Edge, n *profile.Node) string {
	text := r.node(n)
	if e.Parent == e.Child {
		text += " (calls itself)"
	}
	return text
}

// note is a line of text.
type note string

// WriteTo implements io.WriterTo.
func (n note) WriteTo(w io.Writer) (int64, error) {
	written, err := fmt.Fprintln(w, string(n))
	return int64(written), err
}

// writeDot writes the call graph in the language of Graphviz. With --leaks it counts only
// blocks that were not freed, and has only functions and calls with such blocks.
func (r *mprofReport) writeDot(w io.Writer) error {
	var b strings.Builder
	what, sums := "allocated", func(u *profile.Usage) *profile.Sums { return &u.Allocated }
	if r.options.leaks {
		what, sums = "unfreed", func(u *profile.Usage) *profile.Sums { return &u.Unfreed }
	}
	g := r.profile.Graph(r.view())
	n, bytes := sums(&g.Usage).Total()
	fmt.Fprintf(&b, "digraph allocations {\n\tlabel=%s;\n", quoted(fmt.Sprintf("%s: %s in %s", what, plural(bytes, "byte"), plural(n, "block"))))
	b.WriteString("\tnode [shape=box, fontsize=10];\n\tedge [fontsize=9];\n")
	drawn := make(map[*profile.Node]bool)
	for _, node := range g.Nodes {
		count, total := sums(&node.Total).Total()
		if count == 0 || share(total, bytes) < r.limit {
			continue
		}
		drawn[node] = true
		_, self := sums(&node.Self).Total()
		lines := []string{r.label(&node.Frame), fmt.Sprintf("%s (%s%%)", plural(total, "byte"), percent(total, bytes))}
		if self > 0 {
			lines = append(lines, fmt.Sprintf("itself %d", self))
		}
		fmt.Fprintf(&b, "\tn%d [label=%s];\n", node.Number, quoted(lines...))
	}
	for _, node := range g.Nodes {
		for _, e := range node.Children {
			count, total := sums(&e.Usage).Total()
			if count == 0 || !drawn[e.Parent] || !drawn[e.Child] {
				continue
			}
			fmt.Fprintf(&b, "\tn%d -> n%d [label=%s, penwidth=%.1f];\n",
				e.Parent.Number, e.Child.Number, quoted(number(total)), 0.5+share(total, bytes)/20)
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// quoted makes a string of the dot language from lines of text.
func quoted(lines ...string) string {
	for i, line := range lines {
		line = strings.ReplaceAll(line, `\`, `\\`)
		lines[i] = strings.ReplaceAll(line, `"`, `\"`)
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
