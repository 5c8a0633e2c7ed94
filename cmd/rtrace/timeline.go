package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/report/timeview"
	"rtrace-bpf/trace"
)

// timelineCommand shows how much was allocated over time.
func timelineCommand() command {
	return command{
		name: "timeline",
		page: cli.Page{
			Summary:  "show how much memory is allocated over time",
			Synopsis: []string{"[flags] [FILE]"},
			About: "Divides the trace into intervals of equal length. For each, prints the live memory, how much memory the allocator had got from the system (if the " +
				"trace has it), and how much was allocated and freed. Minimum and maximum are taken after each event of the interval, so no peak is lost however few " +
				"the intervals are; the interval with the peak is marked.\n\n" +
				"An event is a call: they are numbered from 1, whatever they did. A realloc is an allocation and a free. Blocks from before the trace are not known, " +
				"and their frees do not count. A trace in mtrc has no times, only events.\n\n" +
				"With --lifetimes it instead prints how long blocks lived, and with --by who allocated them. A block belongs to the thread or function that allocated " +
				"it, or last moved it with realloc; realloc does not restart its lifetime.\n\n" +
				"Memory use grows with the number of live blocks.\n\n" +
				"With -t, -a, -l, -c and -s it instead makes the reports of sp-rtrace-timeline, for every kind of resource and by context: their figures as text, or " +
				"with -o OUT pictures in SVG. Several pictures are called OUT-totals.svg, OUT-activity.svg and so on. It accepts all options of sp-rtrace-timeline, but " +
				"writes only SVG, and -W has no effect because no working files are left. The numbers are the right ones, not always those of the original: see " +
				"Differences, and --legacy. For these reports a stream is copied to a temporary file, and memory use grows with the number of live blocks and distinct " +
				"sizes.",
			Lists: []cli.List{{Title: "Differences", Rows: []cli.ListRow{
				{Name: "median", Text: "of an even number of blocks is the mean of the two middle ones; the original takes the second of these and the next one"},
				{Name: "both", Text: "in histograms is the sum of freed and unfreed, not 0; there is one histogram for each kind of resource"},
				{Name: "slice", Text: "is a twentieth of the time, as in the manual, not 200 ms; a given slice is not rounded to one digit"},
				{Name: "activity", Text: "has a value for every half slice, for every resource and context, however far apart calls are; peaks do not count the call after the slice"},
				{Name: "contexts", Text: "have the blocks that were allocated in them, wherever they are freed; series have the names of contexts"},
				{Name: "refcount", Text: "resources are live until there are as many frees as allocations"},
				{Name: "end", Text: "of blocks that are not freed is the last call, not the last allocation; a block ends when its address is allocated again"},
				{Name: "sizes", Text: "have 64 bits; --filter-size also applies to blocks of size 0"},
				{Name: "midnight", Text: "does not reset the time"},
			}}},
			Examples: []cli.Example{
				{Does: "show when most memory was allocated", Command: "rtrace timeline rtrace-raw-4711-0"},
				{Does: "draw it over time", Command: "rtrace timeline -o timeline.svg rtrace-raw-4711-0"},
				{Does: "show which functions had the memory at the peak", Command: "rtrace timeline -r --by function rtrace-raw-4711-0"},
				{Does: "draw totals, activity and lifetimes, and write the numbers for gnuplot", Command: "rtrace timeline -t -a -l -o report --data numbers rtrace-raw-4711-0"},
				{Does: "show which sizes of small blocks are not freed", Command: "rtrace timeline -c --filter-size -1k rtrace-raw-4711-0"},
				{Does: "write 1000 intervals for another program", Command: "rtrace timeline --csv --points 1000 -o timeline.csv rtrace-raw-4711-0"},
			},
		},
		setup: func(f *flags) runFunc {
			var o timelineOptions
			out := f.group("Output")
			o.addOutput(out, "text, csv or svg (default: by the suffix of OUT, otherwise text; for the reports below text without -o, otherwise svg)", "text", "csv", "svg")
			out.BoolVar(&o.csv, "csv", false, "the same as -f csv")
			what := f.group("What to show")
			what.VarP(groups.Word(&o.x, "", "event", "time"), "x", "x", "divide by `AXIS`: time or event (default: time, or event if the trace has no times)")
			what.Var(groups.Number(&o.points, 0, 0, 1<<20), "points", "divide into at most `N` intervals (default: 20 in text, otherwise 1000)")
			what.BoolVar(&o.lifetimes, "lifetimes", false, "print how long blocks lived, in seconds or events (see -x)")
			what.Var(groups.Word(&o.by, "", "thread", "function"), "by", "print sums by `KEY`: thread or function")
			what.Var(groups.Number(&o.top, 0, 0, groups.Unbounded), "top", "with --by: print only the `N` with most bytes at the peak")
			o.addWhat(what)
			own := o.report.add(f, &o.viewFlags)
			in := f.group("Input")
			in.StringVarP(&o.input, "in", "i", "", "read `FILE` (default: the argument, or standard input)")
			o.blocks.addInput(in)
			return func(ctx context.Context, s cli.Streams, args []string) error {
				if o.input != "" {
					args = append(args, o.input)
				}
				alone := o.report.parse(own)
				o.report.resourceChanged = in.Changed("resource")
				switch {
				case o.report.reports != 0:
					return o.runReports(ctx, s, args)
				case alone != "":
					return cli.Usagef("--%s is for the reports -t, -a, -l, -c and -s; name one of them", alone)
				}
				return o.run(ctx, s, args)
			}
		},
	}
}

type timelineOptions struct {
	viewFlags
	csv         bool
	x, by       string
	axis        timeline.Axis
	points, top int
	lifetimes   bool
	input       string
	report      reportFlags
}

// check checks the flags and determines the format and the axis.
func (o *timelineOptions) check() error {
	if o.csv {
		if o.format != "" && o.format != "csv" {
			return cli.Usagef("--csv and -f %s exclude each other", o.format)
		}
		o.format = "csv"
	}
	if o.format == "" {
		o.format = "text"
		if suffix := o.suffix(); suffix == "svg" || suffix == "csv" {
			o.format = suffix
		}
	}
	if o.points == 0 {
		o.points = 1000
		if o.format == "text" {
			o.points = 20
		}
	}
	o.axis = map[string]timeline.Axis{"": timeline.ByTimeIfKnown, "event": timeline.ByEvent, "time": timeline.ByTime}[o.x]
	tables := o.lifetimes || o.by != ""
	switch {
	case o.lifetimes && o.by != "":
		return cli.Usagef("--lifetimes and --by exclude each other")
	case tables && o.format == "svg":
		return cli.Usagef("--lifetimes and --by are tables; there is no picture of them")
	case o.top > 0 && o.by == "":
		return cli.Usagef("--top needs --by")
	}
	return nil
}

func (o *timelineOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	resolver, err := o.blocks.resolver()
	if err != nil {
		return err
	}
	var t *timeline.Timeline
	var types []string        // of the trace's resources
	var early []*trace.Record // before the first call
	begin := func() {
		o.blocks.resource = wantedType(o.blocks.resource, types)
		t = timeline.New(timeline.Options{
			Axis: o.axis, Points: o.points, Resource: o.blocks.resource,
			Threads: o.by == "thread", Functions: o.by == "function", Framer: o.blocks.framer(resolver),
		})
		for _, r := range early {
			t.Add(r)
		}
	}
	add := func(r *trace.Record) {
		resolver.Observe(r)
		if r.Kind == trace.KindResource {
			types = append(types, strings.Clone(r.Resource.Type))
		}
		switch {
		case t != nil:
			t.Add(r)
		case r.Kind != trace.KindCall:
			early = append(early, r.Clone())
		default:
			begin()
			t.Add(r)
		}
	}
	return o.viewFlags.run(ctx, s, "timeline", args, add, func(w io.Writer, name string) error {
		if t == nil {
			begin()
		}
		known := o.blocks.resource == memoryType || slices.Contains(types, o.blocks.resource) // memory need not be declared
		if err := o.verdict(t, known); err != nil {
			return err
		}
		o.axis = t.Axis()
		return o.write(w, t, name)
	})
}

// verdict returns an error if there is nothing to show.
func (o *timelineOptions) verdict(t *timeline.Timeline, known bool) error {
	total := t.Totals()
	switch {
	case !known:
		return cli.Usagef("--resource %s: the trace has none of this type; rtrace info lists its types", o.blocks.resource)
	case total.Events == 0:
		return errors.New("nothing to show: the trace has no calls")
	case o.axis == timeline.ByTime && total.Duration == 0:
		return cli.WithHint(errors.New("the trace has no times"), "without -x time, the axis is the number of the event")
	}
	return nil
}

func (o *timelineOptions) write(w io.Writer, t *timeline.Timeline, name string) error {
	switch {
	case o.format == "svg":
		return timeview.WriteSVG(w, t, timeview.Options{Name: name, Axis: o.axis, Width: o.width})
	case o.lifetimes:
		return o.writeLifetimes(w, t)
	case o.by != "":
		return o.writeGroups(w, t)
	case o.format == "csv":
		return o.writePointsCSV(w, t)
	}
	return o.writePoints(w, t)
}
