package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/profile"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/internal/wrapper"
	"rtrace-bpf/trace"
)

// mprofCommand prints the views of mpatrol's mprof.
func mprofCommand() command {
	return command{
		name: "mprof",
		page: cli.Page{
			Summary:  "print the four views of mpatrol's mprof: sizes, functions, leaks, call graph",
			Synopsis: []string{"[flags] [FILE]"},
			About: "Adds up all allocations of a trace, and those that were not freed. The tables are those of mpatrol's mprof, but the trace may have any format.\n\n" +
				"The columns s, m, l and x contain the shares of small, medium, large and extra large blocks in per cent of the bytes: empty for none, . for up to 0.5, " +
				"%% from 99.5 on. In the tables of functions, the whole is the last line; in the call graph, it is the same line. A realloc is a free and an " +
				"allocation.\n\n" +
				"In the call graph, a function and a call of one function by another count once for each stack, so recursion does not count twice. The call graph needs " +
				"stacks. Without them, as in mpatrol's own traces, functions are the callers in the trace.\n\n" +
				"Memory use grows with the number of live blocks and distinct stacks.",
			Lists: []cli.List{{Title: "Tables", Rows: []cli.ListRow{
				{Name: "ALLOCATION BINS", Text: "how many blocks there were of each size"},
				{Name: "DIRECT ALLOCATIONS", Text: "allocations by each function itself"},
				{Name: "MEMORY LEAKS", Text: "blocks that were not freed, by function or stack, and their share of its allocations"},
				{Name: "ALLOCATION CALL GRAPH", Text: "allocations through each function: its callers above it, its callees below"},
			}}, {Title: "Differences from mpatrol's mprof", Rows: []cli.ListRow{
				{Name: "unnamed callers", Text: "are one line, ??, for mpatrol's tracing files, which have no code addresses; mprof reads profiles, which have them"},
				{Name: "blocks of size 0", Text: "have a line; the bins of mprof begin at 1"},
				{Name: "the call graph", Text: "also has numbers of blocks and the functions' own allocations, and begins with the largest function, not with the lowest address"},
			}}},
			Examples: []cli.Example{
				{Does: "print sizes, functions and leaks, with names", Command: "rtrace mprof -r rtrace-raw-4711-0"},
				{Does: "print leaks by stacks of up to four functions, and the call graph", Command: "rtrace mprof -r -v -n 4 rtrace-raw-4711-0"},
				{Does: "draw the call graph of the leaks", Command: "rtrace mprof -r -l -g leaks.dot rtrace-raw-4711-0 && dot -Tsvg -O leaks.dot"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(mprofOptions)
			what := f.group("What to print")
			what.BoolVarP(&o.callGraph, "call-graph", "v", false, "print the call graph, too")
			what.StringVarP(&o.graphFile, "graph-file", "g", "", "write the call graph to `FILE` for Graphviz' dot; - is standard output, without the tables")
			what.BoolVarP(&o.leaks, "leaks", "l", false, "use only blocks that were not freed for the graph of --graph-file")
			what.IntVarP(&o.depth, "stack-depth", "n", 1, "distinguish leaks by stacks of `N` functions; 0 is all functions")
			what.BoolVarP(&o.counts, "counts", "c", false, "sort by numbers of blocks instead of bytes")
			what.StringVar(&o.bounds, "bounds", "32,256,2048", "the largest `SIZES` of small, medium and large blocks")
			what.IntVar(&o.bins, "bins", 1024, "print one line for all blocks of `SIZE` and larger")
			what.BoolVar(&o.json, "json", false, "print one JSON object instead of text")
			o.addNames(f.group("Names"))
			o.addInput(f.group("Input"))
			return func(ctx context.Context, s cli.Streams, args []string) error {
				return o.run(ctx, s, args)
			}
		},
	}
}

type mprofOptions struct {
	blockFlags
	callGraph bool
	graphFile string
	leaks     bool
	depth     int
	counts    bool
	bounds    string
	bins      int
	json      bool

	classes profile.Bounds
}

// maxBins limits the memory for bins.
const maxBins = 1 << 20

// check checks flags whose values need more than parsing.
func (o *mprofOptions) check() error {
	if o.depth < 0 {
		return cli.Usagef("--stack-depth takes a number that is not negative")
	}
	if o.bins < 1 || o.bins > maxBins {
		return cli.Usagef("--bins takes a number from 1 to %d", maxBins)
	}
	if o.leaks && o.graphFile == "" {
		return cli.Usagef("--leaks is about the graph; name its file with --graph-file")
	}
	parts := strings.Split(o.bounds, ",")
	ok := len(parts) == len(o.classes)
	for i := 0; ok && i < len(parts); i++ {
		n, err := strconv.ParseUint(strings.TrimSpace(parts[i]), 10, 64)
		ok = err == nil && (i == 0 || n > o.classes[i-1])
		o.classes[i] = n
	}
	if !ok {
		return cli.Usagef("--bounds %s: write three increasing sizes, such as 32,256,2048", o.bounds)
	}
	return nil
}

func (o *mprofOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	var p *profile.Profile
	read := func(in *input) (err error) {
		p, err = o.profile(in, warner(s.Err, "mprof"))
		return err
	}
	return o.in.examine(ctx, s, "mprof", args, read, func(*input) error {
		return o.write(s, &mprofReport{options: o, profile: p, total: p.Total()}, args)
	})
}

// profile reads the trace. Its result is usable even with an error.
func (o *mprofOptions) profile(in trace.Reader, warn func(error)) (*profile.Profile, error) {
	calls := newCallReader(in, o.resource)
	calls.original = true
	defer calls.warn(warn)
	resolver, err := o.resolver()
	if err != nil {
		return nil, err
	}
	framer := o.framer(resolver)
	framer.Wrappers = wrapper.Operators // as in mpatrol's mprof
	p := profile.New(profile.Options{Bounds: o.classes, Bins: o.bins, Framer: framer})
	// With names, each call gets those of its moment, because mappings change. A mapping
	// that is not known then may come at the end.
	var src trace.Reader = calls
	if o.source.wanted() {
		src = resolve.NewReader(calls, resolver)
	}
	var rec trace.Record
	for {
		if err := src.ReadRecord(&rec); err != nil {
			if errors.Is(err, io.EOF) {
				err = calls.missing()
			}
			return p, err
		}
		if !o.source.wanted() {
			resolver.Observe(&rec)
		}
		p.Add(&rec)
	}
}

// write writes the graph and the tables.
func (o *mprofOptions) write(s cli.Streams, r *mprofReport, args []string) error {
	if o.graphFile != "" {
		if !r.profile.HasStacks() {
			warner(s.Err, "mprof")(errors.New("the trace has no stacks: the graph has functions, but no calls"))
		}
		source := ""
		if len(args) > 0 {
			source = args[0]
		}
		out, err := create(s, o.graphFile, source, dotContent)
		if err != nil {
			return err
		}
		if err := out.finish(r.writeDot(out)); err != nil {
			return err
		}
		if out.file == nil {
			return nil
		}
	}
	if o.json {
		return writeJSON(s.Out, r.object())
	}
	return r.print(s.Out)
}
