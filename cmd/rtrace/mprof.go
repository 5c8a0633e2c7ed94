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
	"rtrace-bpf/trace"
)

// mprofCommand prints the views of mpatrol's mprof.
func mprofCommand() command {
	return command{
		name: "mprof",
		page: cli.Page{
			Summary:  "print the four views of mpatrol's mprof: sizes, functions, leaks, call graph",
			Synopsis: []string{"[flags] [FILE]"},
			About: "Adds up all allocations of a trace, and what of them was not freed. The tables are those of mpatrol's mprof; the trace may be any, not only mpatrol's.\n\n" +
				"In the columns s, m, l and x stand the shares of small, medium, large and extra large blocks in per cent of the bytes: empty for none, . for up to 0.5, %% from 99.5 on. " +
				"In the tables of functions the whole is that of the last line, in the call graph that of the same line. A realloc is a free and an allocation.\n\n" +
				"In the call graph a function and a call of one by another count once for each stack they are in, so that recursion makes nothing count twice. " +
				"The call graph needs stacks. Without, as in mpatrol's own traces, functions are the callers that the trace states.\n\n" +
				"It takes memory for the blocks that are live at a time, and for each distinct stack.",
			Lists: []cli.List{{Title: "Tables", Rows: []cli.ListRow{
				{Name: "ALLOCATION BINS", Text: "how many blocks there were of each size"},
				{Name: "DIRECT ALLOCATIONS", Text: "what each function allocated itself"},
				{Name: "MEMORY LEAKS", Text: "what was not freed, of each function or stack, and how much of what it allocated that is"},
				{Name: "ALLOCATION CALL GRAPH", Text: "what was allocated on behalf of each function: above it who called it, below whom it called"},
			}}, {Title: "Differences from mpatrol's mprof", Rows: []cli.ListRow{
				{Name: "unnamed callers", Text: "are one line, ??, in mpatrol's tracing files, which have no addresses of code; mprof reads a profile, which has"},
				{Name: "blocks of size 0", Text: "have a line; mprof's bins begin at 1"},
				{Name: "the call graph", Text: "has numbers of blocks and what functions allocate themselves, too, and begins with who has most, not with the lowest address"},
			}}},
			Examples: []cli.Example{
				{Does: "print sizes, functions and leaks, with names", Command: "rtrace mprof -r rtrace-raw-4711-0"},
				{Does: "print leaks by stacks of up to four functions, and the call graph", Command: "rtrace mprof -r -v -n 4 rtrace-raw-4711-0"},
				{Does: "draw the call graph of what leaked", Command: "rtrace mprof -r -l -g leaks.dot rtrace-raw-4711-0 && dot -Tsvg -O leaks.dot"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(mprofOptions)
			what := f.group("What to print")
			what.BoolVarP(&o.callGraph, "call-graph", "v", false, "print the call graph, too")
			what.StringVarP(&o.graphFile, "graph-file", "g", "", "write the call graph to `FILE` for Graphviz' dot; - is standard output, without the tables then")
			what.BoolVarP(&o.leaks, "leaks", "l", false, "make the graph of --graph-file from what was not freed only")
			what.IntVarP(&o.depth, "stack-depth", "n", 1, "tell leaks apart by stacks of `N` functions; 0 is all")
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

// maxBins bounds the memory for bins.
const maxBins = 1 << 20

// check reads the flags that are no plain values.
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
		return cli.Usagef("--bounds %s: write three sizes, each larger than the one before, as 32,256,2048", o.bounds)
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

// profile reads the trace and returns what was found, also with an error.
func (o *mprofOptions) profile(in trace.Reader, warn func(error)) (*profile.Profile, error) {
	calls := newCallReader(in, o.resource)
	calls.original = true
	defer calls.warn(warn)
	resolver := o.resolver()
	p := profile.New(profile.Options{Bounds: o.classes, Bins: o.bins, Framer: o.framer(resolver)})
	// With names, each call gets those of its moment, as mappings change. What
	// is not known then may be at the end.
	var src trace.Reader = calls
	if o.resolve {
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
		if !o.resolve {
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
		out, err := create(s, o.graphFile, source, false)
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
