package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/mptrace"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// mptraceFile is mpatrol's default name of a trace.
const mptraceFile = "mpatrol.trace"

// mptraceCommand prints a trace like mpatrol's mptrace.
func mptraceCommand() command {
	return command{
		name: "mptrace",
		page: cli.Page{
			Summary:  "print the statistics or the events of a trace like mpatrol's mptrace",
			Synopsis: []string{"[flags] [FILE]"},
			About: "Prints how many blocks and bytes were allocated, freed and live; with -v after a table of all events. A trace in another format than mpatrol's is " +
				"shown as the events that the same trace would have in mpatrol's format. Rows appear as the events come, also from a pipe.\n\n" +
				"Where mptrace prints wrong numbers, rtrace prints the right ones: frees and reallocs of blocks that are not allocated do not count, and a block whose " +
				"index is allocated again counts as freed; warnings report both. If a trace is cut, the statistics are still printed. All streams of a file are " +
				"printed, one after the other, as written by forked processes. The files of -H and -S for the second stream have .2 in their names, and so on. " +
				"docs/formats/mptrace.md has all details.\n\n" +
				"Memory use grows with the number of live blocks; with --legacy, of all blocks. With --legacy, the exit code for a trace that is cut is 1.\n\n" +
				"Without FILE, rtrace reads the trace from standard input, or from mpatrol.trace if standard input is a terminal. If the program is started under the " +
				"name mptrace, it runs this subcommand, and the default for FILE is mpatrol.trace.",
			Examples: []cli.Example{
				{Does: "print the statistics", Command: "rtrace mptrace mpatrol.trace"},
				{Does: "print all events with their call sites", Command: "rtrace mptrace -v -s mpatrol.trace"},
				{Does: "write the events with times and threads", Command: "rtrace mptrace -H trace.hatf --hatf=full rtrace-raw-4711-0"},
				{Does: "print the same bytes as mptrace", Command: "rtrace mptrace --legacy -v mpatrol.trace"},
				{Does: "compile a program that makes the same allocations", Command: "rtrace mptrace -S stdout mpatrol.trace | cc -o again -x c -"},
			},
		},
		setup: func(f *flags) runFunc {
			var o mptraceOptions
			what := f.group("What to print")
			what.BoolVarP(&o.verbose, "verbose", "v", false, "print a row for each event before the statistics")
			what.BoolVarP(&o.source, "source", "s", false, "print the call site of the event below each row, if the trace has it")
			what.StringVarP(&o.hatfFile, "hatf-file", "H", "",
				"write the Heap Allocation Trace Format to `FILE`, or to stdout or stderr; all other output then goes to the other one")
			what.Var(groups.Word(&o.hatf, "mptrace", "mptrace", "full"), "hatf",
				"form of that format, `FORM`: mptrace, or full with times, threads and blocks that realloc does not move")
			what.StringVarP(&o.simFile, "sim-file", "S", "", "write a C program that makes the allocations again to `FILE`, as with -H")
			what.Var(groups.Word(&o.legacy, "", legacyAuto, "fixed64", "asis64", "asis32"), "legacy",
				"print the same bytes as mptrace, including its errors, in the `BUILD` auto, fixed64, asis64 or asis32; "+
					"auto is fixed64 for 64-bit traces and asis32 for 32-bit ones")
			what.Lookup("legacy").NoOptDefVal = legacyAuto
			what.BoolVarP(&o.gui, "gui", "w", false, "accepted, but 'rtrace heapmap' draws the picture")
			what.BoolVarP(&o.version, "version", "V", false, "print the version of rtrace")
			f.Hidden().BoolVar(&o.byName, "as-mptrace", false, "the program was started as mptrace")
			return o.run
		},
	}
}

type mptraceOptions struct {
	verbose, source, gui    bool
	hatfFile, hatf, simFile string
	legacy                  string
	version, byName         bool
}

func (o *mptraceOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if o.version {
		_, err := fmt.Fprintln(s.Out, "rtrace mptrace", cli.BuildVersion())
		return err
	}
	if o.hatf == "full" && o.hatfFile == "" {
		return cli.Usagef("--hatf=full needs --hatf-file")
	}
	file, err := o.file(s, args)
	if err != nil {
		return err
	}
	r := &mptraceRun{mptraceOptions: o, ctx: ctx, streams: s, outputs: newMptraceOutputs(s, file)}
	if o.legacy != "" {
		return r.legacyRun(file)
	}
	if o.gui {
		r.warn("no picture is drawn here; 'rtrace heapmap' does that")
	}
	if isStdout(o.hatfFile) || isStdout(o.simFile) {
		r.outputs.text = r.outputs.stderr
	}
	src, err := r.open(file)
	if err != nil {
		return err
	}
	err = r.printAll(src)
	return errors.Join(r.outputs.finish(err), src.close())
}

// file returns the name of the trace, or "" for standard input.
func (o *mptraceOptions) file(s cli.Streams, args []string) (string, error) {
	if len(args) == 0 && (o.byName || s.InTerminal) {
		return mptraceFile, nil
	}
	return oneFile(s, args)
}

// mptraceRun is one run.
type mptraceRun struct {
	*mptraceOptions
	ctx     context.Context
	streams cli.Streams
	outputs *mptraceOutputs

	complaints [mptrace.Twice + 1]uint64
	warned     int // of warnings
}

// mptraceComplaints is how many wrong events of a stream are reported one by one.
const mptraceComplaints = 5

func (r *mptraceRun) warn(format string, args ...any) {
	warner(r.streams.Err, "mptrace")(fmt.Errorf(format, args...))
}

// printAll prints all streams. If one ends too early, it prints the existing part.
func (r *mptraceRun) printAll(src mptraceSource) error {
	for n := 1; ; n++ {
		p, err := r.begin(n, src.words())
		if err != nil {
			return err
		}
		err = r.printStream(p, src)
		if !isSyntax(err) {
			return err
		}
		if e := r.end(p); e != nil {
			return e
		}
		more := false
		if err == nil {
			more, err = src.nextStream()
		}
		if err != nil {
			_ = src.verdict(r.warn) // err has the details
			return cut(src.name(), err)
		}
		if !more {
			return src.verdict(r.warn)
		}
	}
}

// begin makes the printer of stream n.
func (r *mptraceRun) begin(n, words int) (*mptrace.Printer, error) {
	p := &mptrace.Printer{Accounts: mptrace.NewBook(), Text: r.outputs.text}
	if err := r.configure(p, n, words); err != nil {
		return nil, err
	}
	if n > 1 {
		title := fmt.Sprintf("stream %d", n)
		fmt.Fprintf(p.Text, "\n%s\n%.*s\n\n", title, len(title), "------------------------------")
	}
	return p, p.Begin()
}

// configure sets what p prints and where.
func (r *mptraceRun) configure(p *mptrace.Printer, n, words int) (err error) {
	if r.verbose {
		p.Table = &mptrace.Table{AddressDigits: 2 * words, Sources: r.source, Raw: r.legacy != ""}
	}
	if r.hatfFile != "" {
		if p.HATFTo, p.HATFName, err = r.output(r.hatfFile, n); err != nil {
			return err
		}
		if p.HATFTo != nil {
			p.HATF = &mptrace.HATF{Full: r.hatf == "full"}
		}
	}
	if r.simFile != "" {
		if p.SimulationTo, _, err = r.output(r.simFile, n); err != nil {
			return err
		}
		if p.SimulationTo != nil {
			p.Simulation = mptrace.NewSimulation()
		}
	}
	return nil
}

// output opens the output of stream n; nil if there is no room for it.
func (r *mptraceRun) output(name string, n int) (to *bufio.Writer, path string, err error) {
	if n > 1 && (isStdout(name) || name == "stderr") {
		r.warn("only the first stream goes to %s", name)
		return nil, "", nil
	}
	path = numbered(name, n)
	to, err = r.outputs.open(path)
	return to, path, err
}

// printStream prints the events of a stream.
func (r *mptraceRun) printStream(p *mptrace.Printer, src mptraceSource) error {
	var e wire.Event
	for n := 1; ; n++ {
		time, err := src.next(&e, p)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		entry, err := p.Event(&e, time)
		if err != nil {
			return err
		}
		if entry.Problem != mptrace.None {
			r.complain(entry)
		}
		if n%interval == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
	}
}

// complain reports a wrong event, unless there were too many.
func (r *mptraceRun) complain(n *mptrace.Entry) {
	r.complaints[n.Problem]++
	if r.warned++; r.warned > mptraceComplaints {
		return
	}
	switch n.Problem {
	case mptrace.Unknown:
		r.warn("event %d: no block with index %d is allocated", n.Number, n.Index)
	case mptrace.Twice:
		r.warn("event %d: the block with index %d is still allocated", n.Number, n.Index)
	}
}

// end prints the statistics of a stream.
func (r *mptraceRun) end(p *mptrace.Printer) error {
	if n := r.complaints[mptrace.Unknown]; n > 0 {
		r.warn("frees and reallocs of blocks that are not allocated do not count: %d", n)
	}
	if n := r.complaints[mptrace.Twice]; n > 0 {
		r.warn("blocks whose indices are allocated again count as freed: %d", n)
	}
	r.complaints, r.warned = [mptrace.Twice + 1]uint64{}, 0
	return p.End(true)
}
