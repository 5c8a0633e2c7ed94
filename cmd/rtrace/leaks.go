package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// leaksCommand prints what is allocated at the end of a trace, as mleak did.
func leaksCommand() command {
	return command{
		name: "leaks",
		page: cli.Page{
			Summary:  "print what was never freed, and where it came from",
			Synopsis: []string{"[flags] [FILE]"},
			About: "Prints the blocks that are allocated at the end of a trace, added up by where they were allocated, the most bytes first. " +
				"A block that realloc made counts where and as large as realloc made it. " +
				"Blocks of a program that was replaced by exec are gone. In a trace that was begun in a running program, blocks from before are not known.\n\n" +
				"Where a trace has stacks, frames of the C++ operator new at their beginning are left out. " +
				"Where it has none, the caller that the trace states is all that is known, with its source file and line.\n\n" +
				"It takes memory for the blocks that are live at a time, and for each distinct stack.",
			Lists: []cli.List{{Title: "Keys", Rows: []cli.ListRow{
				{Name: "stack", Text: "the whole stack, or what --max-stack leaves of it; without stacks, function and line"},
				{Name: "function", Text: "the function that called the allocator; see also --caller"},
				{Name: "file, line", Text: "its source file, or file and line, where the trace or with -r debugging information tells them"},
				{Name: "module", Text: "the program or library that it is in"},
				{Name: "size", Text: "the size of the block"},
				{Name: "thread", Text: "the thread that allocated"},
				{Name: "process", Text: "the process, in a trace of several"},
			}}},
			Examples: []cli.Example{
				{Does: "see what leaked most, with names", Command: "rtrace leaks -r --top 10 rtrace-raw-4711-0"},
				{Does: "see which functions hold blocks that are older than ten minutes", Command: "rtrace leaks -r --by function --min-age 10m rtrace-raw-4711-0"},
				{Does: "list each block, with its stack up to four frames", Command: "rtrace leaks --blocks -n 4 rtrace-raw-4711-0"},
				{Does: "get one number for a script", Command: "rtrace leaks --json rtrace-raw-4711-0 | jq .bytes"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(leaksOptions)
			what := f.group("What to print")
			what.StringVar(&o.by, "by", sites.ByStack.String(), "add up the blocks with the same `KEY`; see Keys")
			what.IntVarP(&o.depth, "max-stack", "n", 0, "look at `N` frames of each stack (default: all)")
			what.IntVar(&o.top, "top", 0, "print the `N` largest groups only (default: all)")
			what.BoolVar(&o.blocks, "blocks", false, "list each block")
			what.Var(&o.minSize, "min-size", "leave out blocks smaller than `BYTES` (suffixes K, M, G)")
			what.StringVar(&o.minAge, "min-age", "", "leave out blocks younger than `AGE` at the end of the trace: a time like 10s or 5m, or a number of calls")
			what.BoolVar(&o.json, "json", false, "print one JSON object instead of text")
			names := f.group("Names")
			o.addNames(names)
			names.StringVar(&o.caller, "caller", resolve.Program.String(), "with -r, the function, file and line are of the innermost frame of `WHAT`: program (outside the C and C++ libraries, where there is one) or innermost (of any file, with operator new)")
			o.addInput(f.group("Input"))
			return func(ctx context.Context, s cli.Streams, args []string) error {
				return o.run(ctx, s, args)
			}
		},
	}
}

type leaksOptions struct {
	blockFlags
	by      string
	depth   int
	top     int
	blocks  bool
	minSize groups.Size
	minAge  string
	caller  string
	json    bool

	key    sites.Key
	policy resolve.Policy
	events uint64        // --min-age in calls
	age    time.Duration // --min-age in time
}

// check reads the flags that are no plain values.
func (o *leaksOptions) check() error {
	var ok bool
	if o.key, ok = sites.ParseKey(o.by); !ok {
		return cli.Usagef("--by %s: there are %s", o.by, strings.Join(sites.KeyNames(), ", "))
	}
	if o.policy, ok = resolve.ParsePolicy(o.caller); !ok {
		return cli.Usagef("--caller %s: there are %s", o.caller, strings.Join(resolve.Policies(), ", "))
	}
	if o.depth < 0 || o.top < 0 {
		return cli.Usagef("--max-stack and --top take a number that is not negative")
	}
	if o.minAge == "" {
		return nil
	}
	var err error
	if o.events, err = strconv.ParseUint(o.minAge, 10, 64); err == nil {
		return nil
	}
	if o.age, err = time.ParseDuration(o.minAge); err != nil || o.age < 0 {
		return cli.Usagef("--min-age %s: write a time as 10s or 5m, or a number of calls as 1000", o.minAge)
	}
	return nil
}

func (o *leaksOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	var r *leakReport
	read := func(in *input) (err error) {
		r, err = o.find(in, warner(s.Err, "leaks"))
		return err
	}
	return o.in.examine(ctx, s, "leaks", args, read, func(*input) error {
		if o.json {
			return writeJSON(s.Out, r.object())
		}
		return r.print(s.Out)
	})
}

// find reads the trace and returns what was found, also with an error.
func (o *leaksOptions) find(in trace.Reader, warn func(error)) (*leakReport, error) {
	calls := newCallReader(in, o.resource)
	kept := filter.NewLeaks(calls)
	kept.Fill()
	calls.warn(warn)
	r := &leakReport{options: o, stats: &calls.stats}
	if err := calls.missing(); err != nil {
		return r, err
	}
	if o.age > 0 && calls.stats.first == 0 && len(calls.stats.seq) > 0 {
		return r, cli.Usagef("--min-age %s: the trace has no times; give a number of calls", o.minAge)
	}
	resolver := o.resolver()
	// As in postproc: of some mappings a trace tells late.
	for _, m := range calls.stats.mappings {
		resolver.Observe(m)
	}
	grouping := sites.Options{
		By: o.key, Depth: o.depth, Addresses: o.addresses, Blocks: o.blocks, Framer: o.framer(resolver),
		Module: func(pid int32, addr uint64) string {
			_, module, _ := resolver.Process(pid).Name(addr)
			return module
		},
	}
	if o.resolve {
		grouping.Caller = resolve.NewCallers(nil, resolver, o.policy).Find
	}
	r.groups = sites.NewGrouper(grouping)
	names := resolve.NewReader(kept, resolver)
	var rec trace.Record
	for {
		if err := names.ReadRecord(&rec); err != nil {
			r.unmatched = kept.Finder().Unmatched()
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return r, err
		}
		if rec.Kind == trace.KindCall && rec.Call.Op == trace.OpAlloc {
			r.add(&rec)
		}
	}
}
