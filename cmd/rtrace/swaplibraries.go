package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/internal/analysis/library"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// swapLibrariesCommand prints what each library allocated.
func swapLibrariesCommand() command {
	return command{
		name: "swap-libraries",
		page: cli.Page{
			Summary:  "print what each library allocated, and how much of it is live",
			Synopsis: []string{"[flags] [FILE]"},
			About: "The library of a block is the file whose mapping contains the caller of the allocator at that moment. (After a library is unloaded, its addresses may " +
				"be used again.) Allocations, bytes and frees are those of the window. persistent is the blocks that were allocated in the window and are live at its " +
				"end. Start, end, lowest and highest are all live bytes of the library, including earlier blocks. A free counts for the library that allocated the " +
				"block." + swapAbout,
			Lists: []cli.List{pointList},
			Examples: []cli.Example{
				{Does: "show the memory of each library", Command: "rtrace swap-libraries trace.swap"},
				{Does: "compare libraries between two marks, in a spreadsheet", Command: "rtrace swap-libraries --from begin --to end --tsv trace.swap >libraries.tsv"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(swapFlags)
			o.addWindow(f.group("What to print"))
			o.addInput(f.group("Input"))
			return func(ctx context.Context, s cli.Streams, args []string) error {
				if err := o.window.check(); err != nil {
					return err
				}
				account := library.NewAccount()
				read := func(in *input) error { return o.account(in, account, warner(s.Err, "swap-libraries"), nil) }
				return o.in.examine(ctx, s, "swap-libraries", args, read, func(*input) error {
					return o.printLibraries(s.Out, account)
				})
			}
		},
	}
}

// account adds the records of a trace to an account. each, if not nil, is called after every
// call of the window.
func (o *swapFlags) account(in trace.Reader, account *library.Account, warn func(error), each func(*trace.Record) error) error {
	calls := newCallReader(in, o.resource)
	calls.window = o.window.open()
	var rec trace.Record
	var err error
	for {
		if err = calls.ReadRecord(&rec); err != nil {
			break
		}
		counts := calls.window.counts(&rec)
		account.Add(&rec, counts)
		if counts && rec.Kind == trace.KindCall && each != nil {
			if err := each(&rec); err != nil {
				return err
			}
		}
	}
	calls.warn(warn)
	if account.Unmatched > 0 {
		warn(fmt.Errorf("%s of blocks that were allocated before the trace or are unknown", plural(account.Unmatched, "free")))
	}
	if errors.Is(err, io.EOF) {
		err = calls.missing()
	}
	return err
}

func (o *swapFlags) printLibraries(w io.Writer, account *library.Account) error {
	sheet := newSheet(w, o.tsv, right("pid"), right("allocations"), right("frees"), right("persistent"), right("bytes"), right("persistent bytes"),
		right("start"), right("end"), right("delta"), right("lowest"), right("highest"), left("library"))
	for _, s := range account.List() {
		sheet.row(id(s.PID), count(s.Allocs), count(s.Frees), count(s.Persistent), count(s.Bytes), count(s.PersistentBytes),
			count(s.Start), count(s.End), fmt.Sprint(int64(s.End-s.Start)), count(s.Min), count(s.Max), s.Path)
	}
	return sheet.close()
}
