package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/report/digestview"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// reportCommand writes the page to open first.
func reportCommand() command {
	return command{
		name: "report",
		page: cli.Page{
			Summary:  "write a page about traces: suspects, curves, flame graph, sizes",
			Synopsis: []string{"[flags] -o OUT.html [FILE]", "[flags] -o OUT.html BEFORE AFTER", "[flags] -o OUT.html FILE|DIR..."},
			About: "Writes an HTML page that needs no other file and no network. First it shows the call sites whose blocks pile up, with the verdicts of rtrace leaks, and how " +
				"the resident memory grew; then how the trace was made and what is missing from it; live bytes over time, with " +
				"the peak, pauses and losses; rates; the memory of the process; a flame graph; blocks that are still live at the end, by stack; sizes and lifetimes of blocks; and allocations by function, module, " +
				"thread and process.\n\n" +
				"The flame graph shows blocks that are still live at the end, that were live at the peak, all allocations or temporary ones, in bytes or blocks. A " +
				"click zooms, and a search shows how much matches. A range that you drag over the curve, and fields for a thread, a function and sizes, filter the sums, the flame graph " +
				"and the tables. The page lists what a trace does not contain, such as times, sizes or frees.\n\n" +
				"All processes of a trace are added up, and each type of resource has its own section; the page opens on the largest. The blocks that are still live are those that rtrace leaks " +
				"prints. Stacks get names from the mapped files, if these still exist and are the ones that were traced. If the files have debugging information, " +
				"stacks also get source lines and inlined functions, which are marked.\n\n" +
				"With two traces, the page shows what differs between them: a flame graph in which boxes are coloured by growth, and tables of the functions and stacks " +
				"that changed. It compares live blocks of memory at the end of each trace, as rtrace diff --by stack does, but ignores lines.\n\n" +
				"With three traces or more, or a directory of traces, the page shows their sum: the call sites of all, each with the number of traces, hosts and services that have it, and in how many it " +
				"grows; a flame graph; and the traces, with what is missing from them. You can choose a host and a service. The figures are those of rtrace leaks and rtrace top over the same traces. To add up two traces, " +
				"give --sum or a directory. Memory is the only resource on this page, and rtrace reads each trace twice.\n\n" +
				"For a trace of rtrace-bpf record --budget, the page shows estimates, each with its error: allocations per second by call site, a flame graph of " +
				"them, and when the windows were. Live blocks and leaks are not known then.\n\n" +
				"The page has at most about 5 MB: stacks and names beyond that are added up as (other). Memory use grows with the number of live blocks and distinct " +
				"stacks, per thread and size.",
			Lists: []cli.List{filterList, countList},
			Examples: []cli.Example{
				{Does: "show what a program allocated", Command: "rtrace report -o report.html rtrace-raw-4711-0"},
				{Does: "show what a change of the program made larger", Command: "rtrace report -o growth.html before.trace after.trace"},
				{Does: "show what leaks in a fleet, whose traces are in a folder for each machine", Command: "rtrace report --folder-is host -o fleet.html web1 web2 web3"},
				{Does: "do not use the files of this machine, because the trace is from another one", Command: "rtrace report --no-resolve -o report.html other.rtrace"},
			},
		},
		setup: func(f *flags) runFunc {
			o := &reportOptions{names: nameFlags{base: true}}
			f.group("Output").StringVarP(&o.output, "output", "o", "", "write to the file `OUT`; - is standard output (the default)")
			several := f.group("Several traces")
			several.BoolVar(&o.sum, "sum", false, "add up the traces, also if they are two, which are otherwise compared, or one")
			o.fleet.addFolder(several, "add up the traces; ")
			o.names.add(f.group("Names"))
			o.in.add(f.group("Input"))
			return o.run
		},
	}
}

// filterList explains what the filters of a page select.
var filterList = cli.List{Title: "Filters of the page", Rows: []cli.ListRow{
	{Name: "blocks", Text: "a filter selects blocks by their allocation: when, by which thread, in which size, and with which function in the stack. All figures are about these blocks: \"still live\" are those of them that are live at the end of the recording"},
	{Name: "range", Text: "in the page, drag over the curve, or focus it, press Enter and move the range with the arrow keys, its end with Shift, and clear it with Escape. A range consists of whole intervals, up to 128 for the recording; the page prints their length"},
	{Name: "live at the end of the range", Text: "allocated before the range or in it, and not freed until its end, as the curve shows it. Blocks that are unknown at the end of the recording count before it"},
	{Name: "thread", Text: "an ID, a name, or a part of a name, which selects all threads that have it. A block belongs to the thread that allocated it or last moved it with realloc"},
	{Name: "function", Text: "a part of the name of any function or module in the stack"},
	{Name: "sizes", Text: "from a power of 4 up to the byte before another one"},
	{Name: "not filtered", Text: "suspects and curves; a dashed line shows the live blocks that match. The page leaves out, while a filter is active, lifetimes and calls of traced functions, and with a range, thread or sizes the peak and the age of blocks"},
}}

type reportOptions struct {
	output   string
	sum      bool
	fleet    fleetFlags
	names    nameFlags
	in       inputFlags
	resolver *resolve.Resolver
}

func (o *reportOptions) run(ctx context.Context, s cli.Streams, args []string) (err error) {
	if err := o.names.check(); err != nil {
		return err
	}
	if len(args) == 0 && (o.sum || o.fleet.folderIs != "") {
		return cli.Usagef("--sum and --folder-is are for traces in files, and there is no FILE")
	}
	if o.isFleet(args) {
		return o.runFleet(ctx, s, args)
	}
	if len(args) == 2 {
		return o.compare(ctx, s, args)
	}
	file, err := oneFile(s, args)
	if err != nil {
		return err
	}
	out, err := create(s, o.output, file, htmlContent)
	if err != nil {
		return err
	}
	defer func() { err = out.finish(err) }()
	o.in.windows = true
	in, err := o.in.open(ctx, s, "report", args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	warn := warner(s.Err, "report")
	if o.resolver, err = o.names.open(ctx, warn); err != nil {
		return err
	}
	defer func() { _ = o.resolver.Save() }() // without a cache, the next run is only slower
	if in.windowed() {
		err = o.estimates(ctx, out, in, file, warn)
	} else {
		everyCall(in.Trace, "report") // the page has exact figures
		err = o.exact(out, in)
	}
	if isIncomplete(err) {
		o.names.hint(s.Err, o.resolver)
	}
	return err
}

// exact writes the page of a trace that has every call.
func (o *reportOptions) exact(out io.Writer, in *input) error {
	d := o.digest()
	engine := aggregate.NewReader(&introducer{in, o.resolver})
	err := in.outcome(each(filter.NewJoinMoves(engine), d.Add))
	if !isIncomplete(err) {
		return err
	}
	about := o.about(in, err)
	about.Verdicts = newSiteNamer(engine.Engine, o.names.framer(o.resolver), o.resolver).verdicts()
	w := bufio.NewWriter(out)
	if e := errors.Join(digestview.WriteHTML(w, d.Finish(), about), w.Flush()); e != nil {
		return e
	}
	return err
}

// isFleet reports whether the page is about the sum of traces.
func (o *reportOptions) isFleet(args []string) bool {
	if o.sum || o.fleet.folderIs != "" || len(args) > 2 {
		return len(args) > 0
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		info, err := os.Stat(arg)
		return err == nil && info.IsDir()
	})
}

// digest returns a digest that names frames from the mapped files.
func (o *reportOptions) digest() *digest.Digest {
	return digest.New(digest.Options{
		Framer: o.names.framer(o.resolver), Observe: o.resolver.Observe,
		Module:    func(pid int32, addr uint64) string { return o.resolver.Process(pid).Module(addr) },
		Generated: func(pid int32) bool { return o.resolver.Process(pid).Mapped() },
	})
}

// about returns the page's description of the file. done is the error of reading it.
func (o *reportOptions) about(in *input, done error) digestview.Options {
	stats := in.Stats()
	about := digestview.Options{File: in.name, Format: in.Format, Compression: in.Compression, Side: in.Side, KnowsLoss: in.Format == "jsonl" || in.Format == "nettrace"}
	if stats.Version != "" {
		about.Format += " " + stats.Version
	}
	switch {
	case done == nil:
	case errors.Is(done, trace.ErrTruncated):
		about.Incomplete = "it is cut"
	default:
		about.Incomplete = plural(stats.Skipped, "record") + " could not be read"
	}
	return about
}
