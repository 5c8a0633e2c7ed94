package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"rtrace-bpf/decoder/swap"
	"rtrace-bpf/internal/analysis/library"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// swapCallsCommand lists the calls of a trace.
func swapCallsCommand() command {
	return command{
		name: "swap-calls",
		page: cli.Page{
			Summary:  "list the calls of a trace with their parameters and results",
			Synopsis: []string{"[flags] [FILE]"},
			About: "Prints a row for each call in the trace. In every format these are calls of the allocator. SWAP also has messages for functions, system calls, files, " +
				"threads, locks, sockets and so on. If a call has messages for its beginning and its end, its row is at the end, with the time that it took. Calls that " +
				"did not end come last. Rows are numbered in the order of the beginnings; times are seconds since the first call.\n\n" +
				"Parameters and results of SWAP's messages are printed as in 'rtrace dump', with the letter of their type. Those of calls that created or ended " +
				"something are printed as NAME=VALUE." + swapAbout,
			Examples: []cli.Example{
				{Does: "print the calls that failed", Command: "rtrace swap-calls --failed trace.swap"},
				{Does: "open all calls in a spreadsheet", Command: "rtrace swap-calls --tsv trace.swap >calls.tsv"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(callsOptions)
			what := f.group("What to print")
			what.BoolVar(&o.failed, "failed", false, "leave out calls without an error")
			what.StringVar(&o.function, "function", "", "leave out calls of other functions than `NAME`")
			o.tsvFlag(what)
			o.in.add(f.group("Input"))
			return o.run
		},
	}
}

type callsOptions struct {
	swapFlags
	failed   bool
	function string
}

func (o *callsOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	in := &callList{options: o, maps: library.NewMaps(false), resources: map[uint32]string{}, open: map[openKey]*callRow{}}
	in.sheet = newSheet(s.Out, o.tsv, right("index"), right("time"), right("elapsed"), right("pid"), right("tid"), left("kind"), left("function"),
		left("parameters"), left("return"), right("error"), right("caller"), left("library"))
	read := func(t *input) error {
		side, _ := swap.ParseSide(t.Facts) // the decoder warns of an error
		in.names, in.syscalls, in.functions = side.APIs, side.Syscalls, side.Functions
		err := in.read(t)
		if in.lost > 0 {
			warner(s.Err, "swap-calls")(fmt.Errorf("%s lost while recording: some calls are missing, and the ends of others", plural(in.lost, "event")))
		}
		return err
	}
	return o.in.examine(ctx, s, "swap-calls", args, read, func(*input) error {
		in.end()
		return in.sheet.close()
	})
}

// callRow is a call.
type callRow struct {
	index    uint64
	time     int64
	pid, tid int32
	library  string
	ended    bool
	elapsed  int64
	swap.Event
}

// openKey identifies a call that has not ended.
type openKey struct {
	pid, tid int32
	key      string
}

// maxOpen limits the calls that are open at a time.
const maxOpen = 1 << 20

// callList lists calls.
type callList struct {
	options *callsOptions
	sheet   *sheet
	maps    *library.Maps
	names   map[uint32]string
	// syscalls are the names of the kernel's functions by address.
	syscalls map[uint64]string
	// functions are those of the process.
	functions map[uint64]string
	parser    swap.Parser
	fields    swap.Fields
	resources map[uint32]string // types
	open      map[openKey]*callRow
	index     uint64
	first     int64
	lost      uint64 // events
}

func (l *callList) read(in trace.Reader) error {
	var rec trace.Record
	for {
		if err := in.ReadRecord(&rec); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		l.maps.Add(&rec)
		switch {
		case rec.Kind == trace.KindLost:
			l.lost += rec.Lost.Events()
		case rec.Kind == trace.KindResource:
			l.resources[rec.Resource.ID] = rec.Resource.Type
		case rec.Kind == trace.KindCall:
			l.call(&rec)
		case rec.Kind == trace.KindOpaque && rec.Opaque.Format == "swap":
			m := swap.Message{ID: rec.Opaque.ID, Data: rec.Opaque.Data}
			if e, ok := l.parser.Event(&m, &l.fields, l.names); ok {
				if name := l.syscalls[e.PC]; name != "" && e.Kind == "system call" {
					e.Function = name
				}
				if name := l.functions[e.PC]; name != "" && e.Kind == "function" {
					e.Function = name
				}
				l.add(&rec, e)
			}
		}
	}
}

// add adds the row for a record, if it has one.
func (l *callList) add(r *trace.Record, e swap.Event) {
	if l.first == 0 {
		l.first = r.Time
	}
	key := openKey{r.PID, r.TID, e.Key}
	if begun := l.open[key]; e.Phase == swap.End && begun != nil {
		delete(l.open, key)
		begun.ended, begun.elapsed = true, r.Time-begun.time
		begun.Result, begun.Errno = e.Result, e.Errno
		l.print(begun)
		return
	}
	l.index++
	row := l.row(r, e)
	if e.Phase != swap.Begin || len(l.open) >= maxOpen {
		l.print(row)
		return
	}
	if before := l.open[key]; before != nil {
		l.print(before) // its end is missing
	}
	l.open[key] = row
}

// row makes the row of a record.
func (l *callList) row(r *trace.Record, e swap.Event) *callRow {
	row := &callRow{index: l.index, time: r.Time, pid: r.PID, tid: r.TID, Event: e}
	switch path, ok := l.maps.Find(r.PID, e.Caller); {
	case e.Caller == 0:
		row.library = library.Unknown
	case ok:
		row.library = path
	default:
		row.library = library.Unmapped
	}
	return row
}

// end prints the calls that have not ended.
func (l *callList) end() {
	rows := make([]*callRow, 0, len(l.open))
	for _, row := range l.open {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *callRow) int { return int(a.index) - int(b.index) })
	for _, row := range rows {
		l.print(row)
	}
}

func (l *callList) print(row *callRow) {
	if l.options.failed && row.Errno == 0 || l.options.function != "" && l.options.function != row.Function {
		return
	}
	elapsed, caller, failure := "-", "-", "-"
	if row.ended {
		elapsed = secondsOf(row.elapsed)
	}
	if row.Caller != 0 {
		caller = hexAddress(row.Caller)
	}
	if row.Errno != 0 {
		failure = fmt.Sprint(row.Errno)
	}
	l.sheet.row(count(row.index), sinceStart(row.time, l.first), elapsed, id(row.pid), id(row.tid), row.Kind, row.Function,
		row.Args, row.Result, failure, caller, row.library)
}
