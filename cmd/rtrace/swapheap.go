package main

import (
	"context"
	"errors"

	"rtrace-bpf/internal/analysis/library"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// swapHeapCommand prints the live bytes of each library over time.
func swapHeapCommand() command {
	return command{
		name: "swap-heap",
		page: cli.Page{
			Summary:  "print the live bytes of each library over time",
			Synopsis: []string{"[flags] [FILE]"},
			About: "At every step, prints a row for each library whose live bytes have changed, and one for each process, with the library total. The library of a block " +
				"is the file that contains the caller of the allocator; see 'rtrace swap-libraries'." + swapAbout,
			Lists: []cli.List{pointList},
			Examples: []cli.Example{
				{Does: "print the growth of the heap every second", Command: "rtrace swap-heap trace.swap"},
				{Does: "draw the curve of one library elsewhere", Command: "rtrace swap-heap --every 100ms --tsv trace.swap | awk -F '\\t' '$5 ~ /libfoo/' >libfoo.tsv"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(swapFlags)
			var every string
			what := f.group("What to print")
			what.StringVar(&every, "every", "1s", "print rows every `STEP`: a time such as 100ms or 5s, or a number of calls")
			o.addWindow(what)
			o.addInput(f.group("Input"))
			return func(ctx context.Context, s cli.Streams, args []string) error {
				return o.heap(ctx, s, args, every)
			}
		},
	}
}

func (o *swapFlags) heap(ctx context.Context, s cli.Streams, args []string, every string) error {
	if err := o.window.check(); err != nil {
		return err
	}
	distance, err := parseStep(every)
	if err != nil {
		return err
	}
	c := &curve{
		account: library.NewAccount(), every: distance, shown: map[library.Key]uint64{},
		sheet: newSheet(s.Out, o.tsv, right("time"), right("pid"), right("blocks"), right("bytes"), left("library")),
	}
	read := func(in *input) error {
		err := o.account(in, c.account, warner(s.Err, "swap-heap"), c.call)
		c.rows()
		return err
	}
	return o.in.examine(ctx, s, "swap-heap", args, read, func(*input) error { return c.sheet.close() })
}

// curve prints an account at every step.
type curve struct {
	account *library.Account
	every   step
	sheet   *sheet
	shown   map[library.Key]uint64 // bytes that were printed last
	first   int64                  // time of the first call
	last    int64                  // of the previous call
	next    int64                  // time of the next rows
	calls   uint64
	printed uint64 // number of calls of the next rows
}

// total is the name of the library in the row of a process.
const total = "total"

// call adds the next call, which is already in the account. Rows are for the moment before
// it, except the last ones.
func (c *curve) call(r *trace.Record) error {
	c.calls++
	if c.every.time == 0 {
		c.last = r.Time
		if c.first == 0 {
			c.first = r.Time
		}
		if c.calls%c.every.calls == 0 {
			c.rows()
		}
		return nil
	}
	if r.Time == 0 {
		return cli.WithHint(errors.New("the trace has no times"), "give --every a number of calls")
	}
	if c.first == 0 {
		c.first, c.next = r.Time, r.Time+int64(c.every.time)
	}
	c.last = r.Time
	if r.Time >= c.next {
		c.rows()
		c.next = r.Time + int64(c.every.time) - (r.Time-c.first)%int64(c.every.time)
	}
	return nil
}

// rows prints the changes.
func (c *curve) rows() {
	if c.calls == c.printed {
		return
	}
	c.printed = c.calls
	now := sinceStart(c.last, c.first)
	list := c.account.List()
	for len(list) > 0 {
		sum := library.Sums{Key: library.Key{PID: list[0].PID, Path: total}}
		n := 0
		for ; n < len(list) && list[n].PID == sum.PID; n++ {
			s := &list[n]
			sum.Live += s.Live
			sum.End += s.End
			if old, ok := c.shown[s.Key]; ok && old == s.End {
				continue
			}
			c.shown[s.Key] = s.End
			c.sheet.row(now, id(s.PID), count(s.Live), count(s.End), s.Path)
		}
		c.sheet.row(now, id(sum.PID), count(sum.Live), count(sum.End), total)
		list = list[n:]
	}
}
