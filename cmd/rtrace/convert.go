package main

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/decoder"
	"rtrace-bpf/decoder/swap"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/sidefile"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

func convertCommand() command {
	return command{
		name: "convert",
		page: cli.Page{
			Summary:  "write a trace in another format",
			Synopsis: []string{"[-f FORMAT] [-o OUT] [FILE]", "-f parquet -o DIR FILE|DIR..."},
			About: "Writes a trace in another format, or as a profile. Without -f, the suffix of OUT selects the format. If the suffix is not known, the format is " + encoder.Default + ".\n\n" +
				"Data that the new format cannot represent goes to OUT.side. This file is written if OUT is a regular file, and the input is jsonl or has a side file " +
				"itself. swap always gets one, with the names of functions by number. OUT appears when it is complete; if anything fails, nothing is left. If the input " +
				"is cut, OUT contains its whole part.\n\n" +
				"A profile is not the trace, but its sums by stack: all allocations, and blocks that were not freed. Memory use grows with the number of live blocks " +
				"and distinct stacks; for pprof also with the threads and functions that allocate from each stack. " +
				"Of a trace recorded with --budget, pprof, folded and speedscope have estimates of all allocations, and no blocks that were not freed.\n\n" +
				"parquet adds traces to the directory OUT, as tables that docs/formats/parquet.md describes; docs/queries.md has questions to them as SQL. A trace that OUT has " +
				"already is replaced. Memory use grows with the number of live blocks and distinct stacks.",
			Lists: []cli.List{formatList(), profileList(), tablesList(), pointList},
			Examples: []cli.Example{
				{Does: "count the calls of each function", Command: "rtrace convert -f jsonl rtrace-raw-4711-0 | jq -r 'select(.kind==\"call\").function' | sort | uniq -c"},
				{Does: "convert it back for the original tools", Command: "rtrace convert -o trace.rtrace trace.jsonl"},
				{Does: "record in mtrc where the program called the allocator", Command: "rtrace convert --callers -o trace.mtrc rtrace-raw-4711-0"},
				{Does: "show with pprof who allocated the blocks that were not freed", Command: "rtrace convert -r -o heap.pprof rtrace-raw-4711-0 && go tool pprof -top heap.pprof"},
				{Does: "draw all allocations as a flame graph", Command: "rtrace convert -r -f folded --value alloc_space rtrace-raw-4711-0 | flamegraph.pl --countname=bytes >alloc.svg"},
				{Does: "look at a trace with heaptrack", Command: "rtrace convert -r -o heap.heaptrack.gz rtrace-raw-4711-0 && heaptrack_print heap.heaptrack.gz"},
				{Does: "add the traces of a machine to tables for DuckDB", Command: "rtrace convert -f parquet --host web1 -o fleet.parquet rtrace-raw-4711-0 rtrace-raw-4712-0"},
				{Does: "view a trace in PerfView, with function names from the files of this machine", Command: "rtrace convert --nettrace-symbols -o trace.nettrace rtrace-raw-4711-0"},
				{Does: "view a trace with mpatrol's mptrace", Command: "rtrace convert -f mtrc --mtrc-legacy rtrace-raw-4711-0 | mptrace --verbose -"},
			},
		},
		setup: func(f *flags) runFunc {
			var c convert
			out := f.group("Output")
			out.VarP(groups.Word(&c.format, "", slices.Concat(encoder.FormatNames(), profileFormatNames(), []string{tablesFormat})...), "format", "f", "write `FORMAT`: "+encoder.Names()+", "+profileNames()+", "+tablesFormat)
			out.StringVarP(&c.output, "output", "o", "", "write to the file `OUT`; - is standard output (the default)")
			c.place.add(out)
			out.Var(groups.Word(&c.options.SprtraceDialect, "wire", "wire", "document"), "rtrace-dialect", "sp-rtrace: `DIALECT` wire for its tools, or document for the format in its protocol document")
			out.BoolVar(&c.options.MTRCLegacy, "mtrc-legacy", false, "mtrc: keep all numbers below 2^31, so that the unmodified 64-bit mptrace can read the file; addresses are mapped, sizes and thread ids are cut")
			out.IntVar(&c.options.MTRCWords, "mtrc-words", 0, "mtrc: bytes of a word in the header, `4|8`; mptrace reads only its own size (default: the pointer size of the traced machine)")
			out.Var(groups.Word(&c.options.SwapDialect, "document", "document", "kernel"), "swap-dialect", "swap: `DIALECT` document for the format in its protocol document, or kernel for the one that devices sent (task names of 15 bytes)")
			out.Var(groups.Word(&c.options.SwapTime, "seconds-first", "seconds-first", "formula"), "swap-time", "swap: `ORDER` of times, seconds-first as in all public writers, or formula as in the newer protocol document")
			out.BoolVar(&c.options.SwapNoStacks, "swap-no-stacks", false, "swap: leave out the private messages with whole stacks, which other readers skip")
			c.nettrace.add(out)
			c.callers.add(out)
			c.profile.add(f.group("Profiles"))
			c.input.add(f.group("Input"))
			return c.run
		},
	}
}

func formatList() cli.List {
	list := cli.List{Title: "Formats"}
	for _, f := range encoder.Formats() {
		name := f.Name
		if f.Suffix != "" {
			name += " (" + f.Suffix + ")"
		}
		list.Rows = append(list.Rows, cli.ListRow{Name: name, Text: f.Desc})
	}
	return list
}

func profileList() cli.List {
	list := cli.List{Title: "Formats of profiles"}
	for _, f := range profileFormats {
		list.Rows = append(list.Rows, cli.ListRow{Name: f.name + " (" + strings.Join(f.suffixes, ", ") + ")", Text: f.desc})
	}
	return list
}

// convert is one run of the subcommand.
type convert struct {
	input    inputFlags
	format   string
	output   string
	options  encoder.Options
	callers  callerFlags
	nettrace nettraceFlags
	profile  profileFlags
	place    tableFlags

	encoder  trace.Writer
	side     *sidefile.Writer
	swap     wire.Side                 // of the input
	heap     func() *sidefile.HeapInfo // of the input, while it is read; may be nil
	heapNote *sidefile.HeapInfo        // the side file's note on the state of the heap
}

// target returns the requested format.
func (c *convert) target() (encoder.Format, error) {
	name := c.format
	if name == "" {
		for _, f := range encoder.Formats() {
			if f.Suffix != "" && filepath.Ext(c.output) == f.Suffix {
				name = f.Name
			}
		}
	}
	f, err := encoder.Lookup(name)
	if err != nil {
		return f, &cli.UsageError{Err: err}
	}
	if err := c.checkProfile(false, f.Name); err != nil {
		return f, err
	}
	if err := c.callers.check(f.Name); err != nil {
		return f, err
	}
	if err := c.nettrace.check(f.Name); err != nil {
		return f, err
	}
	if w := c.options.MTRCWords; w != 0 && w != 4 && w != 8 {
		return f, cli.Usagef("--mtrc-words is 4 or 8, not %d", w)
	} else if w == 4 && c.options.MTRCLegacy {
		return f, cli.Usagef("--mtrc-legacy is for the mptrace of 64 bits, --mtrc-words=4 for that of 32")
	}
	return f, nil
}

func (c *convert) run(ctx context.Context, s cli.Streams, args []string) (err error) {
	if c.wantsTables() {
		return c.tables(ctx, s, args)
	}
	if err := c.place.unused(); err != nil {
		return err
	}
	if f, ok := findProfile(c.format, c.output); ok {
		if err := c.checkProfile(true, f.name); err != nil {
			return err
		}
		c.profile.in = c.input
		return c.profile.convert(ctx, s, &f, c.output, args)
	}
	format, err := c.target()
	if err != nil {
		return err
	}
	name, err := oneFile(s, args)
	if err != nil {
		return err
	}
	holds := textContent
	if format.Binary {
		holds = binaryContent(cmp.Or(format.Suffix, ".rtrace"))
	}
	out, err := create(s, c.output, name, holds)
	if err != nil {
		return err
	}
	defer func() { err = out.finish(err) }()
	c.input.windows = format.Name == "jsonl" || format.Name == "nettrace" // they contain the windows
	in, err := c.input.open(ctx, s, "convert", args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()

	c.format = format.Name
	c.options.KeepSeq = in.Format == "text"
	c.options.KeepOpaque = true // other contents of the trace stay in it
	c.options.Nettrace = c.nettrace.encoding(ctx, in, name, decoder.Options{Strict: c.input.strict, NoSide: c.input.noSide})
	if c.encoder, err = encoder.New(format.Name, out, c.options); err != nil {
		return err
	}
	c.swap, _ = swap.ParseSide(in.Facts) // the decoder warns of an error
	c.heap = in.HeapInfo
	if out.regular() && !format.Whole && !c.input.noSide && (in.Format == "jsonl" || in.Format == "nettrace" || in.Side != "" || format.Name == "swap") {
		if sameFile(c.output+".side", in.Side) {
			return cli.Usagef("%s is both input and output", in.Side)
		}
		if c.side, err = sidefile.NewWriter(c.output+".side", encoder.PositionsOf(format.Name, c.encoder)); err != nil {
			return err
		}
	}
	src := c.callers.reader(ctx, in, name, decoder.Options{Strict: c.input.strict, NoSide: c.input.noSide})
	err = c.finish(in.outcome(trace.Copy(c, src)))
	if isIncomplete(err) {
		warn := warner(s.Err, "convert")
		for _, remark := range encoder.Remarks(c.encoder) {
			warn(errors.New(remark))
		}
	}
	return err
}

// finish completes the output, or discards it if err makes it worthless.
func (c *convert) finish(err error) error {
	if isIncomplete(err) {
		if e := c.encoder.Close(); e != nil {
			err = e
		}
	}
	if c.side == nil {
		return err
	}
	if !isIncomplete(err) {
		return errors.Join(err, c.side.Discard())
	}
	if apis, start, ok := encoder.SwapSide(c.encoder); ok {
		c.swap.Version, c.swap.Start, c.swap.APIs = encoder.SwapVersion, start, apis
		if e := c.side.Facts(wire.Format, &c.swap); e != nil {
			err = e
		}
	}
	about := c.heapNote
	if c.heap != nil {
		about = cmp.Or(c.heap(), about)
	}
	if about != nil {
		if e := c.side.HeapInfo(about); e != nil {
			err = e
		}
	}
	if e := c.side.Close(); e != nil {
		return e
	}
	return err
}

// WriteRecord passes r to the encoder and to the side file. It replaces the name of a side
// file in the trace with that of the new one, or drops it.
func (c *convert) WriteRecord(r *trace.Record) error {
	if r.Kind == trace.KindComment {
		if about, ok := sidefile.ParseComment(r.Comment); ok {
			about.Time = r.Time
			c.heapNote = &about
		}
	}
	if r.Kind == trace.KindAttachment && r.Attachment.Name == "side" {
		return nil
	}
	if err := c.encoder.WriteRecord(r); err != nil {
		return err
	}
	if c.side == nil {
		return nil
	}
	if err := c.side.WriteRecord(r); err != nil {
		return err
	}
	if r.Kind != trace.KindHeader || c.format != encoder.Default {
		return nil // other formats find it by its name
	}
	return c.encoder.WriteRecord(&trace.Record{
		Kind: trace.KindAttachment, Time: r.Time, PID: r.PID,
		Attachment: trace.Attachment{Name: "side", Path: filepath.Base(c.output) + ".side"},
	})
}

// Flush implements trace.Writer.
func (c *convert) Flush() error { return c.encoder.Flush() }

// Close implements trace.Writer.
func (c *convert) Close() error { return c.finish(nil) }
