package main

import (
	"context"
	"errors"
	"os"
	"strconv"

	"rtrace-bpf/internal/cli"
)

// graphsCommand creates a folder of pictures and texts about a trace, like the scripts
// rtrace-graphs-overview and rtrace-graphs-function.
func graphsCommand() command {
	return command{
		name: "graphs",
		page: cli.Page{
			Summary:  "create a folder with all pictures and texts about a trace",
			Synopsis: []string{"overview [flags] [FILE]", "function [flags] NAME [[PERCENT] FILE]"},
			About: "Creates a new folder with the pictures of rtrace timeline, the leaks with function names, their call graph, and index.html. That page shows all of " +
				"them and needs no other file. If a trace has no times, the pictures use the numbers of calls instead. No existing file is overwritten, and if anything " +
				"fails, no folder is left.\n\n" +
				"With function, everything covers only blocks that were allocated through a function or library whose name begins with NAME.\n\n" +
				"dot of Graphviz draws the picture of the call graph. If it is not installed, only that picture is missing.\n\n" +
				"The trace is read several times; a stream is copied to a temporary file first.",
			Lists: []cli.List{{Title: "Files", Rows: []cli.ListRow{
				{Name: "index.html", Text: "a page that shows all others"},
				{Name: "totals.svg, activity.svg, lifetime.svg", Text: "allocated memory over time; see rtrace timeline"},
				{Name: "histogram-count.svg, histogram-size.svg", Text: "sizes of blocks"},
				{Name: "leaks.txt", Text: "blocks that were not freed, by stack, the most bytes first, as printed by rtrace postproc -l -c -s size -r"},
				{Name: "profile.txt", Text: "sizes, functions, leaks and the call graph as tables; see rtrace mprof"},
				{Name: "callgraph.dot, callgraph.svg", Text: "functions through which the blocks that were not freed were allocated; see rtrace calltree"},
			}}},
			Examples: []cli.Example{
				{Does: "show everything", Command: "rtrace graphs overview -o report rtrace-raw-4711-0 && xdg-open report/index.html"},
				{Does: "show allocations through functions of a library", Command: "rtrace graphs function libglib-2.0 rtrace-raw-4711-0"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(graphsOptions)
			out := f.group("Output")
			out.StringVarP(&o.output, "output", "o", "", "create the folder `DIR` (default: FILE-overview or FILE-function)")
			out.Float64Var(&o.limit, "limit", -1, "leave out functions with less than `PERCENT` of the bytes in the call graph (default: 5 for overview, 0.5 for function)")
			what := f.group("What to show")
			o.process.add(what)
			what.BoolVarP(&o.blocks.addresses, "addresses", "a", false, "distinguish places within a function by address")
			what.BoolVar(&o.blocks.mangled, "no-demangle", false, "print mangled names of callers")
			in := f.group("Input")
			o.blocks.addInput(in)
			in.Lookup("resource").Usage = "leaks and call graph: use the resources of the type `NAME`, as printed by rtrace info"
			return func(ctx context.Context, s cli.Streams, args []string) error {
				if err := o.check(args); err != nil {
					return err
				}
				return o.run(ctx, s)
			}
		},
	}
}

type graphsOptions struct {
	output  string
	limit   float64
	process processFlags
	blocks  blockFlags

	kind string // overview or function
	name string // of the function
	args []string
}

// check splits the arguments.
func (o *graphsOptions) check(args []string) error {
	if len(args) == 0 {
		return cli.Usagef("the kind of graphs is missing; write rtrace graphs overview FILE, or rtrace graphs function NAME FILE")
	}
	o.kind, args = args[0], args[1:]
	limit := 5.0
	switch o.kind {
	case "overview":
	case "function":
		if len(args) == 0 {
			return cli.Usagef("graphs function needs the beginning of a NAME")
		}
		o.name, args = args[0], args[1:]
		if info, err := os.Stat(o.name); len(args) == 0 && err == nil && info.Mode().IsRegular() {
			return cli.Usagef("%s is a file: NAME, the beginning of a function's name, goes before it", o.name)
		}
		limit = 0.5
		if len(args) == 2 { // the order of the original's arguments
			var err error
			if limit, err = strconv.ParseFloat(args[0], 64); err != nil {
				return cli.Usagef("%s is not a number of per cent", args[0])
			}
			args = args[1:]
		}
	default:
		if info, err := os.Stat(o.kind); err == nil && info.Mode().IsRegular() {
			return cli.Usagef("%s is a file, and the kind of graphs goes before it; did you mean rtrace graphs overview %s?", o.kind, o.kind)
		}
		return cli.Usagef("%s: not overview or function", o.kind)
	}
	if o.limit == -1 {
		o.limit = limit
	}
	o.args = args
	if o.limit < 0 || o.limit > 100 || o.limit != o.limit {
		return cli.Usagef("--limit takes 0 to 100 per cent")
	}
	return nil
}

// folder returns the name of the folder to create.
func (o *graphsOptions) folder(file string) (string, error) {
	switch {
	case o.output != "":
		return o.output, nil
	case file == "":
		return "", cli.Usagef("a trace from standard input needs -o DIR")
	}
	return file + "-" + o.kind, nil
}

func (o *graphsOptions) run(ctx context.Context, s cli.Streams) (err error) {
	file, err := oneFile(s, o.args)
	if err != nil {
		return err
	}
	path, err := o.folder(file)
	if err != nil {
		return err
	}
	in, err := o.blocks.in.openTwice(ctx, s, "graphs", o.args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	dir, err := createFolder(path)
	if err != nil {
		return err
	}
	g := &graphs{graphsOptions: o, ctx: ctx, in: in, dir: dir, warn: warner(s.Err, "graphs")}
	return dir.finish(g.make())
}
