package main

import (
	"context"
	"slices"
	"strings"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/cli"
)

// topCommand prints who allocates most.
func topCommand() command {
	return command{
		name: "top",
		page: cli.Page{
			Summary:  "print who allocates most: in total, temporarily, at the end, at the peak",
			Synopsis: []string{"[flags] [FILE]", "[flags] FILE|DIR..."},
			About: "Adds up all allocations of a trace by call site, the most bytes first. Live is the memory that is still live at the end, or at --to. Peak is the " +
				"largest amount of live memory that a group had. At peak is the live memory of the group when the live memory of all groups together was largest. A " +
				"block from realloc counts at the call of realloc.\n\n" +
				"Of a trace recorded with --budget, it prints estimates of what was allocated, each with its interval of 95 %. Live, temporary and peak are not known then.\n\n" +
				"If the trace has stacks, frames of the C++ operator new at their beginning are left out. If it has none, only the caller in the trace is known.\n\n" +
				"With several traces, or a directory of traces, all are added up. The same call site in several traces is one row, with the number of traces, hosts and " +
				"services that it is in; --per prints rows for each of them instead. Peaks are added up, too, although they are at different times. The first lines name " +
				"the traces that are incomplete, have gaps or lost events, or could not be read; with these, the exit status is 3.\n\n" +
				"Memory use grows with the number of live blocks and distinct stacks of one trace, and with the call sites of all.",
			Lists:  []cli.List{keyList, pointList, countList},
			Common: commonGroupFlags(cli.ListRow{Name: "sort"}),
			Examples: []cli.Example{
				{Does: "show the ten functions that allocate most, with names", Command: "rtrace top --top 10 rtrace-raw-4711-0"},
				{Does: "show which stacks allocate blocks that are freed at once", Command: "rtrace top --by stack --sort temporary --top 5 rtrace-raw-4711-0"},
				{Does: "show who allocates most in many traces, by host", Command: "rtrace top --folder-is host --per host web1 web2"},
				{Does: "show what had the memory at the peak of the second minute", Command: "rtrace top --from 1m --to 2m --sort at-peak rtrace-raw-4711-0"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(topOptions)
			what := f.group("What to print")
			o.addGroups(what, sites.ByFunction)
			what.Var(groups.Word(&o.sort, topOrders[0].name, orderNames()...), "sort", "sort by `COLUMN`: "+strings.Join(orderNames(), ", "))
			what.Var(&o.minSize, "min-size", "leave out blocks smaller than `BYTES` (suffixes K, M, G)")
			o.window.add(what)
			what.BoolVar(&o.json, "json", false, "print one JSON object instead of text")
			o.fleet.add(f.group("Several traces"))
			o.addGroupNames(f.group("Names"))
			o.addInput(f.group("Input"))
			return o.run
		},
	}
}

// topOrder is a figure by which groups can be sorted.
type topOrder struct {
	name string
	of   func(*usage.Usage) uint64
}

var topOrders = []topOrder{
	{"bytes", func(u *usage.Usage) uint64 { return u.Allocated.Bytes }},
	{"blocks", func(u *usage.Usage) uint64 { return u.Allocated.Blocks }},
	{"temporary", func(u *usage.Usage) uint64 { return u.Temporary.Blocks }},
	{"live", func(u *usage.Usage) uint64 { return u.Live.Bytes }},
	{"unknown", func(u *usage.Usage) uint64 { return u.Unknown.Bytes }},
	{"peak", func(u *usage.Usage) uint64 { return u.Peak.Bytes }},
	{"at-peak", func(u *usage.Usage) uint64 { return u.AtPeak.Bytes }},
}

func orderNames() []string {
	names := make([]string, len(topOrders))
	for i, o := range topOrders {
		names[i] = o.name
	}
	return names
}

type topOptions struct {
	tallyFlags
	fleet fleetFlags
	sort  string
	order topOrder
}

func (o *topOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	o.order = topOrders[slices.Index(orderNames(), o.sort)]
	if err := o.check(); err != nil {
		return err
	}
	if o.fleet.several(args) {
		return o.runFleet(ctx, s, args)
	}
	if err := o.fleet.check(args); err != nil {
		return err
	}
	file, err := oneFile(s, args)
	if err != nil {
		return err
	}
	var r *topReport
	o.in.windows = true
	read := func(in *input) error {
		t, err := o.tally(ctx, in, tallyOptions{file: file, warn: warner(s.Err, "top")})
		r = &topReport{tally: t, options: o}
		return err
	}
	return o.in.examine(ctx, s, "top", args, read, func(*input) error {
		if r.estimates.Any() {
			return r.showEstimates(s)
		}
		r.collect()
		if o.json {
			return writeJSON(s.Out, r.object())
		}
		err := r.print(s.Out)
		o.names.hint(s.Err, r.resolver)
		return err
	})
}
