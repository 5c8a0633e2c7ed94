package main

import (
	"cmp"
	"context"
	"errors"
	"io"

	"rtrace-bpf/internal/analysis/library"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/report/table"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// swapPersistentCommand lists the blocks that outlive an interval.
func swapPersistentCommand() command {
	return command{
		name: "swap-persistent",
		page: cli.Page{
			Summary:  "list the blocks that were allocated in an interval and not freed by its end",
			Synopsis: []string{"[flags] [FILE]"},
			About: "Without --from and --to, the interval is the whole trace. Each block has its time, thread, address and size, the function that allocated it, and its " +
				"caller: the library and, with -r, the function. With --stack, its call stack follows, a row per frame.\n\n" +
				"With --freed, blocks that were freed are listed too. The column leak is no for these and yes for the others.\n\n" +
				"Memory use grows with the number of live blocks. --freed needs disk space for all calls." + swapAbout,
			Lists: []cli.List{pointList},
			Examples: []cli.Example{
				{Does: "list the blocks that the second minute left behind", Command: "rtrace swap-persistent -r --from 1m --to 2m trace.swap"},
				{Does: "show the call stack of each block", Command: "rtrace swap-persistent -r --stack trace.swap"},
				{Does: "list all blocks of an interval, and which of them leaked", Command: "rtrace swap-persistent --freed --from begin --to end trace.swap"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(persistentOptions)
			what := f.group("What to print")
			what.BoolVar(&o.stack, "stack", false, "print the call stack of each block below it: function, address and file of each frame")
			what.BoolVar(&o.freed, "freed", false, "also list blocks that were freed by the end of the interval, and whether each block is a leak")
			o.addWindow(what)
			o.addNames(f.group("Names"))
			o.addInput(f.group("Input"))
			return o.run
		},
	}
}

type persistentOptions struct {
	swapFlags
	stack bool
	freed bool

	sheet *sheet
	first int64 // time of the first call
}

func (o *persistentOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if err := o.window.check(); err != nil {
		return err
	}
	columns := []table.Column{
		right("call"), right("time"), right("pid"), right("tid"), right("address"), right("size"),
		left("allocated by"), left("caller"), left("library"),
	}
	if o.freed {
		columns = append(columns, left("leak"))
	}
	o.sheet = newSheet(s.Out, o.tsv, columns...)
	read := func(in *input) error { return o.list(in, warner(s.Err, "swap-persistent")) }
	return o.in.examine(ctx, s, "swap-persistent", args, read, func(*input) error { return o.sheet.close() })
}

func (o *persistentOptions) list(in trace.Reader, warn func(error)) (err error) {
	calls := newCallReader(in, o.resource)
	calls.window = o.window.open()
	source := trace.Reader(calls)
	var all *twofold
	if o.freed {
		if all, err = newTwofold(calls); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, all.close()) }()
		source = all
	}
	kept := filter.NewLeaks(source)
	kept.Fill()
	calls.warn(warn)
	if err := calls.missing(); err != nil {
		return err
	}
	ordinal, leaked := kept.Ordinal, func() bool { return true }
	source = kept
	if o.freed {
		if err := all.rewind(kept.Finder().Leaks()); err != nil {
			return err
		}
		source, ordinal, leaked = all, func() uint64 { return all.ordinal }, func() bool { return all.leaked }
	}
	o.first = calls.stats.first
	resolver, err := o.resolver()
	if err != nil {
		return err
	}
	for _, m := range calls.stats.mappings { // some mappings come late in a trace
		resolver.Observe(m)
	}
	framer := o.framer(resolver)
	maps := library.NewMaps(false)
	names := resolve.NewReader(source, resolver)
	var rec trace.Record
	for {
		if err := names.ReadRecord(&rec); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		maps.Add(&rec)
		if rec.Kind == trace.KindCall && (rec.Call.Op == trace.OpAlloc || rec.Call.Op == trace.OpMove) &&
			ordinal() > calls.window.before && calls.window.inContext(&rec) {
			o.block(&rec, maps, &framer, leaked())
		}
	}
}

// block prints a block.
func (o *persistentOptions) block(r *trace.Record, maps *library.Maps, framer *sites.Framer, leaked bool) {
	c := &r.Call
	frames := framer.Append(nil, r.PID, &c.Stack, &c.Caller, 0)
	caller, file := frames[0].Function, library.Unknown
	if frames[0].Addr != 0 {
		caller = cmp.Or(caller, hexAddress(frames[0].Addr))
		file = libraryOf(maps, r.PID, frames[0].Addr)
	}
	cells := []string{
		count(c.Seq), sinceStart(r.Time, o.first), id(r.PID), id(r.TID), hexAddress(c.ID), count(c.Size),
		c.Function, cmp.Or(caller, library.Unknown), file,
	}
	if o.freed {
		leak := "no"
		if leaked {
			leak = "yes"
		}
		cells = append(cells, leak)
	}
	o.sheet.row(cells...)
	if !o.stack {
		return
	}
	for i := range frames {
		if f := &frames[i]; f.Addr != 0 {
			o.sheet.row("", "", "", "", hexAddress(f.Addr), "", "", cmp.Or(f.Function, "-"), libraryOf(maps, r.PID, f.Addr))
		}
	}
}

// libraryOf returns the file that is mapped at an address.
func libraryOf(maps *library.Maps, pid int32, addr uint64) string {
	if path, ok := maps.Find(pid, addr); ok {
		return path
	}
	return library.Unmapped
}
