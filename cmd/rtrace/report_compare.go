package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/report/digestview"
)

// compare writes the page of two traces. Their stacks match as in rtrace diff --by stack, but lines do
// not count.
func (o *reportOptions) compare(ctx context.Context, s cli.Streams, args []string) (err error) {
	if args[0] == args[1] {
		return cli.Usagef("%s is both traces", args[0])
	}
	out, err := create(s, o.output, args[0], htmlContent)
	if err != nil {
		return err
	}
	defer func() { err = out.finish(err) }()
	if sameFile(o.output, args[1]) {
		return cli.Usagef("%s is both input and output", o.output)
	}
	of := &diffOptions{}
	of.key, of.names, of.in, of.resource = sites.ByStack, o.names, o.in, memoryType
	r := &diffReport{options: of, byName: true, rows: make(map[string]*diffRow)}
	err = r.two(ctx, s, "report", args)
	if !isIncomplete(err) {
		return err
	}
	w := bufio.NewWriter(out)
	if e := errors.Join(digestview.WriteComparison(w, r.comparison(args)), w.Flush()); e != nil {
		return e
	}
	r.hints.print(s.Err)
	return err
}

// comparison returns what the page shows.
func (r *diffReport) comparison(files []string) *digestview.Comparison {
	c := &digestview.Comparison{Before: base(files[0]), After: base(files[1])}
	c.Notes = append(c.Notes, "Blocks allocated in each recording and still live at its end; earlier blocks are not included. Resource: "+printable.Name(r.options.resource)+".")
	for after, when := range []string{"before", "after"} {
		if d := r.lasted[after]; d > 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("The recording %s lasted %s s from the first to the last call.", when, seconds(d)))
		}
		if text := r.unknownLine(when, r.unknown[after]); text != "" {
			c.Notes = append(c.Notes, "Careful: "+text)
		}
	}
	if r.rated() {
		before, after := r.rate(r.total.before, 0), r.rate(r.total.after, 1)
		c.Notes = append(c.Notes, fmt.Sprintf("The recordings are of a running process and differ in length: %.1f bytes per second stayed before, %.1f after. rtrace diff compares the stacks per second.", before.Bytes, after.Bytes))
	}
	for _, key := range slices.Sorted(maps.Keys(r.rows)) {
		d := r.rows[key]
		if d.before == (live.Amount{}) && d.after == (live.Amount{}) {
			continue
		}
		c.Rows = append(c.Rows, digestview.Compared{Frames: d.frames, Before: d.before, After: d.after})
	}
	return c
}
