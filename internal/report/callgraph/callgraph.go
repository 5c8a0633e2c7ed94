// Package callgraph writes a calltree.Tree as a graph in Graphviz's dot
// language, in the form of sp-rtrace's rtrace-calltree.
package callgraph

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/calltree"
)

// Type selects the contents of a graph.
type Type int

// The types of graphs.
const (
	Bytes   Type = iota // functions by the bytes allocated through them
	Count               // functions by the number of allocations
	Topmost             // the traces with the highest addresses
)

var typeNames = [...]string{"graph", "count", "topmost"}

// String returns the name of a type, as ParseType accepts it.
func (t Type) String() string { return typeNames[t] }

// ParseType returns the type with the given name.
func ParseType(name string) (Type, bool) {
	i := slices.Index(typeNames[:], name)
	return Type(i), i >= 0
}

// Types lists the names of all types.
func Types() []string { return slices.Clone(typeNames[:]) }

// Options of a graph.
type Options struct {
	Type Type
	// BottomUp draws arrows from callees to callers.
	BottomUp bool
	// Limit is the smallest share of the whole, in percent, of a node that is
	// drawn. Topmost ignores it.
	Limit float64
	// EdgeLimit is the smallest share of an arrow that is drawn, in percent.
	EdgeLimit float64
	// HideBelow leaves out the nodes that stand for all nodes below the limit.
	HideBelow bool
	// Depth is the number of traces that Topmost draws.
	Depth int
	// EmphLimit is the share in percent from which a node is emphasized.
	// OwnLimit is the ratio of a node's amount to that of its children from
	// which it is emphasized in another way.
	EmphLimit, OwnLimit float64
	// Cluster lists libraries and source files whose nodes are drawn together.
	Cluster []string
	// Parameters keeps the parameters of C++ functions.
	Parameters bool
	// About is a line about the trace, printed under the title. It may be
	// empty.
	About string
}

// Write writes a graph.
func Write(w io.Writer, t *calltree.Tree, o *Options) error {
	out := bufio.NewWriter(w)
	g := &graph{w: out, tree: t, Options: o}
	g.choose()
	fmt.Fprintf(out, head, escape(g.title()))
	g.clusters()
	for i := range g.edges {
		fmt.Fprintf(out, "%s\n", g.edges[i])
	}
	fmt.Fprintln(out, "}")
	return out.Flush()
}

// head is the text before the nodes. Sizes are those of an A4 page, in inches.
const head = `
# Convert this to PostScript with:
#   dot -Tps -o alloc-graph.ps <this file>

digraph alloc_graph {
# set layout options
center=1;
#ratio=fill;
ratio=compress;
# avoid line crossing
#mclimit=2.0;

# page size A4
page="11.69,8.27";
size="9.69,6.27";
#page="8.27,11.69";
#size="6.27,9.69";
margin="1.0";

# set style options
color="black";
bgcolor="white";
node [shape="ellipse"];
edge [dir="forward" arrowsize="2"];

labelloc="t";
label="%s";

`

// graph is a graph in progress.
type graph struct {
	*Options
	w     *bufio.Writer
	tree  *calltree.Tree
	shown []bool // nodes by Index
	below int    // number of nodes written for those below the limit
	edges []string
}

// title returns the label of the graph.
func (g *graph) title() string {
	var s string
	switch g.Type {
	case Bytes:
		s = fmt.Sprintf("Allocation size totals callgraph\nFunctions through which >=%.1f%% amount of the allocations total were done", g.Limit)
	case Count:
		s = fmt.Sprintf("Allocation counts callgraph\nFunctions which did or caused >=%.1f%% of all allocations", g.Limit)
	case Topmost:
		s = fmt.Sprintf("Functions involved in %d topmost allocations", g.Depth)
	}
	if g.About != "" {
		s += "\n\n(" + g.About + ")"
	}
	return s
}

// choose selects the nodes to draw, and lists the traces of Topmost.
func (g *graph) choose() {
	g.shown = make([]bool, len(g.tree.Nodes))
	if g.Type != Topmost {
		for _, n := range g.tree.Nodes {
			g.shown[n.Index] = !n.Trimmed && g.share(n.Sum) >= g.Limit
		}
		return
	}
	traces := slices.Clone(g.tree.Traces)
	slices.SortFunc(traces, func(a, b calltree.Trace) int { return cmp.Or(cmp.Compare(b.Top, a.Top), cmp.Compare(b.ID, a.ID)) })
	for i := range traces[:min(g.Depth, len(traces))] {
		fmt.Fprintf(g.w, "# 0x%x: %d\n", traces[i].Top, traces[i].ID)
		for _, n := range traces[i].Nodes {
			g.shown[n.Index] = !n.Trimmed
		}
	}
}

// share returns the relevant share of a sum for this type, in percent.
func (g *graph) share(s calltree.Sum) float64 {
	bytes, calls := g.tree.Shares(s)
	if g.Type == Count {
		return calls
	}
	return bytes
}

// clusters writes all nodes, those of clusters first.
func (g *graph) clusters() {
	var (
		order []string
		nodes = make(map[string][]*calltree.Node) // "" for nodes outside of clusters
	)
	for _, n := range g.tree.Nodes {
		if !g.shown[n.Index] {
			continue
		}
		name := ""
		if slices.Contains(g.Cluster, n.File) {
			name = n.File
		}
		if nodes[name] == nil && name != "" {
			order = append(order, name)
		}
		nodes[name] = append(nodes[name], n)
	}
	for _, name := range order {
		// Without its own label it would inherit that of the graph.
		fmt.Fprintf(g.w, "subgraph \"cluster-%[1]s\" {\nlabel=\"%[1]s\";\n", escape(name))
		for _, n := range nodes[name] {
			g.node(n)
		}
		fmt.Fprintln(g.w, "}")
	}
	for _, n := range nodes[""] {
		g.node(n)
	}
}

// node writes a node, and if needed another one for its neighbours below the
// limit. It collects the arrows in g.edges.
func (g *graph) node(n *calltree.Node) {
	style := ""
	if g.share(n.Sum) >= g.EmphLimit {
		own := n.Own.Bytes
		if g.Type == Count {
			own = n.Own.Calls
		}
		style = " style=bold color=red"
		if own >= g.OwnLimit {
			style = " style=filled fillcolor=lightgray color=red"
		}
	}
	if n.End {
		style += " shape=diamond style=filled fillcolor=lightgray"
	}
	fmt.Fprintf(g.w, "N%d [label=\"%s\\n%s\"%s];\n", n.Index, escape(g.name(n)), g.amount(n.Sum, g.share(n.Sum)), style)

	var (
		edges   = n.Children
		hidden  calltree.Sum
		percent float64
		count   int
	)
	if g.BottomUp {
		edges = n.Parents
	}
	for _, e := range edges {
		next := e.Child
		if g.BottomUp {
			next = e.Parent
		}
		switch {
		case g.shown[next.Index]:
			if g.EdgeLimit == 0 || g.share(e.Sum) >= g.EdgeLimit {
				g.edges = append(g.edges, fmt.Sprintf("N%d -> N%d;", n.Index, next.Index))
			}
		case !g.HideBelow:
			hidden.Calls += next.Calls
			hidden.Bytes += next.Bytes
			percent += g.share(next.Sum)
			count++
		}
	}
	if count == 0 {
		return
	}
	what := "a function"
	if count > 1 {
		what = fmt.Sprintf("%d functions", count)
	}
	fmt.Fprintf(g.w, "U%d [label=\"%s\\n%s\"];\n", g.below, what, g.amount(hidden, percent))
	g.edges = append(g.edges, fmt.Sprintf("N%d -> U%d;", n.Index, g.below))
	g.below++
}

// name returns the label of a node, of one line or two.
func (g *graph) name(n *calltree.Node) string {
	if n.Function == "" {
		return n.Name
	}
	name := n.Function
	if !g.Parameters {
		name = short(name)
	}
	if n.Place != "" {
		name += "\n" + n.Place
	}
	return name
}

// amount returns the label of a sum. Shares are rounded down, as in the
// original.
func (g *graph) amount(s calltree.Sum, percent float64) string {
	if g.Type == Count {
		return fmt.Sprintf("%d%% (%d)", int(percent), s.Calls)
	}
	const kb = 1024
	return fmt.Sprintf("%d%% (%dKB / %d)", int(percent), s.Bytes/kb+(s.Bytes%kb+kb/2)/kb, s.Calls)
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// escape escapes a text for use in a quoted string.
func escape(s string) string { return escapes.Replace(s) }
