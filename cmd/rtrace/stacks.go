package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// stacksCommand prints the stacks of a trace.
func stacksCommand() command {
	return command{
		name: "stacks",
		page: cli.Page{
			Summary:  "print each stack of a trace and how often it occurs",
			Synopsis: []string{"[flags] [FILE]"},
			About: "Prints the distinct stacks of calls, samples and other events, the most frequent first, each with its innermost frame first. Names of code that a " +
				"runtime compiled come from the trace, even if they come after the stacks in it. Names of other code come from the mapped files.\n\n" +
				"Memory use grows with the number of distinct stacks.",
			Examples: []cli.Example{
				{Does: "show the ten most frequent stacks of a sampler", Command: "rtrace stacks --kind sample --top 10 trace.nettrace"},
				{Does: "show all stacks that allocate, with the names of native functions", Command: "rtrace stacks --kind call rtrace-raw-4711-0"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(stacksOptions)
			what := f.group("What to print")
			what.Var(groups.Word(&o.kind, "", stackKinds...), "kind", "print only stacks of records of a `KIND`: "+strings.Join(stackKinds, ", ")+" (default: all)")
			what.Var(groups.Number(&o.top, 0, 0, groups.Unbounded), "top", "print only the `N` most frequent stacks")
			what.BoolVar(&o.json, "json", false, "print one JSON object instead of text")
			o.names.add(f.group("Names"))
			o.in.add(f.group("Input"))
			return o.run
		},
	}
}

// stackKinds are the kinds of records that have stacks.
var stackKinds = []string{trace.KindCall.String(), trace.KindSample.String(), trace.KindEvent.String()}

type stacksOptions struct {
	kind  string
	top   int
	json  bool
	names nameFlags
	in    inputFlags
}

func (o *stacksOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if err := o.names.check(); err != nil {
		return err
	}
	resolver, err := o.names.open(ctx, warner(s.Err, "stacks"))
	if err != nil {
		return err
	}
	defer func() { _ = resolver.Save() }() // without a cache, the next run is only slower
	list := newStackList(o, resolver)
	read := func(in *input) error {
		return each(in, list.add)
	}
	return o.in.examine(ctx, s, "stacks", args, read, func(*input) error {
		report := list.report(o.top)
		if o.json {
			return writeJSON(s.Out, report)
		}
		w := bufio.NewWriter(s.Out)
		report.writeText(w)
		o.names.hint(s.Err, resolver)
		return w.Flush()
	})
}

// stacksReport is the output of 'rtrace stacks', and of --json.
type stacksReport struct {
	Records uint64       `json:"records"` // of the kinds that have stacks
	Without uint64       `json:"without"` // records among them without one
	Stacks  []stackGroup `json:"stacks"`
}

type stackGroup struct {
	What    string        `json:"what"`
	PID     int32         `json:"pid,omitempty"`
	Records uint64        `json:"records"`
	Weight  uint64        `json:"weight,omitempty"` // bytes of calls, weights of samples
	Frames  []frameReport `json:"frames"`
}

type frameReport struct {
	Address string `json:"address"`
	Text    string `json:"text"`

	shown string // on terminals
}

func (r *stacksReport) writeText(w io.Writer) {
	fmt.Fprintf(w, "%d records, %d of them without a stack; %d stacks shown\n", r.Records, r.Without, len(r.Stacks))
	for i := range r.Stacks {
		s := &r.Stacks[i]
		fmt.Fprintf(w, "\n%d %s", s.Records, sites.Printable(s.What))
		if s.Weight > 0 {
			fmt.Fprintf(w, ", %d in all", s.Weight)
		}
		fmt.Fprintln(w)
		for _, f := range s.Frames {
			fmt.Fprintf(w, "\t%s %s\n", f.Address, sites.Printable(f.shown))
		}
	}
}
