package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/calltree"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/report/callgraph"
	"rtrace-bpf/trace"
)

// calltreeCommand draws the functions through which allocations were made, like
// rtrace-calltree of sp-rtrace.
func calltreeCommand() command {
	return command{
		name: "calltree",
		page: cli.Page{
			Summary:  "draw the functions through which memory was allocated",
			Synopsis: []string{"[flags] [FILE]"},
			About: "Writes a graph for dot of Graphviz. A node is a function, a library whose functions are not known, or the traced function itself. Below its name are " +
				"the share of all memory that was allocated through it, the sum, and the number of allocations. An arrow leads from a caller to the function that it " +
				"called. In a recursion, an allocation counts once for each function.\n\n" +
				"All allocations of the trace count. With -l, or if the trace was filtered like that, only blocks that are still live at its end count. Shares of bytes " +
				"include 8 bytes for each block, an estimate of what allocators need.\n\n" +
				"Nodes at an end of the stacks are diamonds. Nodes with a large share are red; they are filled if more was allocated through them than through the " +
				"functions that they call.\n\n" +
				"--stop, --ignore and other flags compare names as in the original program: \"main() in PROGRAM\"; \"main() at FILE.c:12\"; \"libc\" for libc.so.6 if the " +
				"function is not known; for the traced function \"malloc\", or \"malloc<memory>\" in a trace with several types of resources. You can repeat these flags. " +
				"Frames without any known name are left out.\n\n" +
				"Memory use grows with the number of distinct stacks, and with -l also of live blocks.",
			Lists: []cli.List{{Title: "Types", Rows: []cli.ListRow{
				{Name: "graph", Text: "the functions through which most bytes were allocated"},
				{Name: "count", Text: "the functions through which most allocations were made"},
				{Name: "topmost", Text: "the functions that lead to the blocks with the highest addresses, which keep the heap from shrinking"},
			}}},
			Examples: []cli.Example{
				{Does: "draw where leaks come from", Command: "rtrace calltree -l -r -o leaks.svg rtrace-raw-4711-0"},
				{Does: "show allocations through one function, without details below 2 %", Command: "rtrace calltree -r --include-only=parse --limit=2 --show-below-limit=no -o parse.dot rtrace-raw-4711-0"},
				{Does: "use it on text from rtrace postproc", Command: "rtrace postproc -l -c -r -i rtrace-raw-4711-0 | rtrace calltree --type=count --leafs=no"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(calltreeOptions)
			o.addGraph(f.group("Graph"))
			o.addAllocations(f.group("Which allocations"))
			o.addNodes(f.group("Which nodes"))
			f.Hidden().Float64Var(&o.graph.OwnLimit, "own-alloc-emph-limit", 1.2, "")
			in := f.group("Input")
			o.blocks.source.addSource(in)
			in.BoolVar(&o.blocks.mangled, "no-demangle", false, "print mangled names of callers")
			o.blocks.in.add(in)
			return o.run
		},
	}
}

type calltreeOptions struct {
	output    string
	typ       string
	direction string
	sizes     string
	ends      yesNo
	middles   yesNo
	showBelow yesNo
	args      yesNo
	verbose   yesNo
	progress  yesNo
	referrers yesNo
	shortcuts [len(ignoreShortcuts)]yesNo
	nodes     []string // --node
	blocks    blockFlags
	graph     callgraph.Options
	tree      calltree.Options
}

func (o *calltreeOptions) addGraph(f *pflag.FlagSet) {
	f.StringVarP(&o.output, "output", "o", "", "write to the file `OUT`: a graph, or with a name that ends with .svg a picture, which dot of Graphviz draws; - is standard output (the default)")
	f.Var(groups.Word(&o.typ, callgraph.Bytes.String(), callgraph.Types()...), "type", "draw a graph of `TYPE`; see Types")
	f.Var(groups.Word(&o.direction, "tb", "tb", "bt"), "direction", "draw arrows in `DIRECTION`: tb from caller to callee, bt from callee to caller")
	f.Float64Var(&o.graph.Limit, "limit", 10, "leave out nodes with less than `PERCENT` of the whole")
	f.Float64Var(&o.graph.EdgeLimit, "edge-limit", 0, "leave out arrows with less than `PERCENT` of the whole")
	f.Float64Var(&o.graph.EmphLimit, "emph-limit", 60, "draw nodes with at least `PERCENT` in red")
	f.Float64Var(&o.graph.OwnLimit, "own-alloc-limit", 1.2, "fill red nodes through which at least `FACTOR` times as much was allocated as through their callees")
	o.showBelow = true
	addYesNo(f, &o.showBelow, "show-below-limit", "draw one node for all callees below the limit: `yes|no`")
	f.Var(groups.Number(&o.graph.Depth, 3, 1, groups.Unbounded), "depth", "topmost: draw the stacks of the `N` highest addresses")
	f.StringArrayVar(&o.graph.Cluster, "cluster", nil, "draw the nodes of the library or source file `NAME` in one frame")
	f.BoolVar(&o.graph.Parameters, "parameters", false, "print the parameters of C++ functions")
}

func (o *calltreeOptions) addAllocations(f *pflag.FlagSet) {
	f.BoolVarP(&o.blocks.liveOnly, "filter-leaks", "l", false, "use only blocks that are still live at the end")
	f.StringVar(&o.sizes, "size-range", "", "use only allocations of `MIN-MAX` bytes; either may be missing (suffixes K, M, G)")
	o.blocks.addAnyResource(f)
	f.StringArrayVar(&o.tree.Only, "include-only", nil, "use only stacks with a node whose name begins with `PREFIX`")
	f.StringArrayVar(&o.tree.OnlyArgs, "include-only-args", nil, "use only calls whose first argument begins with `PREFIX`; needs --show-args")
}

func (o *calltreeOptions) addNodes(f *pflag.FlagSet) {
	f.VarP(groups.Number(&o.tree.Depth, 0, 0, groups.Unbounded), "max-stack", "n", "use the innermost `N` frames of each stack (default: all)")
	f.StringArrayVar(&o.tree.Stop, "stop", nil, "end stacks at nodes whose name begins with `PREFIX`")
	f.StringArrayVar(&o.tree.Ignore, "ignore", nil, "leave out nodes whose name begins with `PREFIX`")
	f.StringArrayVar(&o.tree.IgnoreMiddle, "ignore-middle", nil, "leave out nodes whose name contains `TEXT`")
	f.StringArrayVar(&o.tree.Keep, "no-ignore", nil, "keep nodes whose name begins with `PREFIX` nevertheless")
	for i := range ignoreShortcuts {
		addYesNo(f, &o.shortcuts[i], ignoreShortcuts[i].flag, ignoreShortcuts[i].usage+": `yes|no`")
	}
	f.StringArrayVar(&o.tree.Join, "join", nil, "make one node of the function, source file or library `NAME`")
	o.ends, o.middles = true, true
	addYesNo(f, &o.ends, "leafs", "draw nodes that only lead from or to one other: `yes|no`")
	addYesNo(f, &o.middles, "intermediate", "draw nodes with one caller that call one other: `yes|no`")
	addYesNo(f, &o.args, "show-args", "print the first argument of a call instead of the traced function: `yes|no`")
	f.StringArrayVar(&o.nodes, "node", nil, "print details of the node `NAME` to standard error; * is all nodes")
	addYesNo(f, &o.referrers, "show-references", "with --node: print the nodes that refer to it, and how: `yes|no`")
	addYesNo(f, &o.progress, "progress", "print the number of calls read so far to standard error: `yes|no`")
	addYesNo(f, &o.verbose, "verbose", "print what is ignored, and counts, to standard error: `yes|no`")
}

// check checks flags whose values need more than parsing.
func (o *calltreeOptions) check() error {
	o.graph.Type, _ = callgraph.ParseType(o.typ)
	o.graph.BottomUp = o.direction == "bt"
	for _, x := range []struct {
		flag     string
		value    float64
		min, max float64
	}{
		{"limit", o.graph.Limit, 0, 100},
		{"edge-limit", o.graph.EdgeLimit, 0, 100},
		{"emph-limit", o.graph.EmphLimit, 0, 100},
		{"own-alloc-limit", o.graph.OwnLimit, 1, 1e6},
	} {
		if !(x.value >= x.min && x.value <= x.max) { // rejects NaN, too
			return cli.Usagef("--%s takes %g to %g, not %g", x.flag, x.min, x.max, x.value)
		}
	}
	if err := o.parseSizes(); err != nil {
		return err
	}
	o.graph.HideBelow = !bool(o.showBelow)
	o.tree.Args = bool(o.args)
	for i, on := range o.shortcuts {
		if on {
			o.tree.Ignore = append(o.tree.Ignore, ignoreShortcuts[i].prefixes...)
			o.tree.IgnoreMiddle = append(o.tree.IgnoreMiddle, ignoreShortcuts[i].parts...)
		}
	}
	return nil
}

func (o *calltreeOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	file, err := oneFile(s, args)
	if err != nil {
		return err
	}
	out, err := create(s, o.output, file, dotContent)
	if err != nil {
		return err
	}
	var (
		builder *calltree.Builder
		about   *origins
		warn    = warner(s.Err, "calltree")
	)
	read := func(in *input) (err error) {
		about = &origins{src: o.counted(in, s.Err)}
		builder, err = o.read(about, warn)
		return err
	}
	return out.finish(o.blocks.in.examine(ctx, s, "calltree", args, read, func(*input) error {
		tree := builder.Tree()
		if tree.Calls == 0 {
			warn(errors.New("no allocations to draw"))
		}
		o.explain(s.Err, tree)
		if !o.ends {
			tree.TrimEnds()
		}
		if !o.middles {
			tree.TrimMiddles()
		}
		o.graph.About = about.label(o.blocks.liveOnly, o.blocks.source.any)
		return o.draw(ctx, out, tree)
	}))
}

// draw writes the graph, or a picture of it if the output's name ends with .svg.
func (o *calltreeOptions) draw(ctx context.Context, out io.Writer, tree *calltree.Tree) error {
	if !strings.HasSuffix(strings.ToLower(o.output), ".svg") {
		return callgraph.Write(out, tree, &o.graph)
	}
	var graph bytes.Buffer
	if err := callgraph.Write(&graph, tree, &o.graph); err != nil {
		return err
	}
	drawn, err := picture(ctx, graph.Bytes())
	if err != nil {
		if errors.Is(err, errNoDot) {
			err = cli.WithHint(fmt.Errorf("-o %s: %w", o.output, err), "install graphviz, or write the graph with -o "+strings.TrimSuffix(o.output, filepath.Ext(o.output))+".dot")
		}
		return err
	}
	_, err = out.Write(drawn)
	return err
}

// read reads the trace. Its result is complete even with an error.
func (o *calltreeOptions) read(src trace.Reader, warn func(error)) (*calltree.Builder, error) {
	resolver, err := o.blocks.resolver()
	if err != nil {
		return nil, err
	}
	framer := o.blocks.framer(resolver)
	o.tree.Name, o.tree.Source = framer.Name, framer.Source
	builder := calltree.NewBuilder(o.tree)
	return builder, o.blocks.allocations(src, resolver, warn, builder.Add)
}
