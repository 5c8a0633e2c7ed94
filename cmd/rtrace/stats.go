package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"rtrace-bpf/internal/analysis/sizes"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
)

// statsCommand compares the leaks of several traces by size, like rtrace-stats of sp-rtrace.
func statsCommand() command {
	return command{
		name: "stats",
		page: cli.Page{
			Summary:  "compare several traces by the number of live blocks of each size",
			Synopsis: []string{"[flags] FILE FILE..."},
			About: "For each trace except the first, prints the sizes that have more or fewer blocks still live at the end than in the previous trace, in ascending order. " +
				"If the number of blocks of a size grows with each repetition of some action, these blocks are leaks, however small. 'rtrace leaks' and 'rtrace " +
				"calltree --size-range' show where they come from.\n\n" +
				"Memory use grows with the number of live blocks.",
			Lists: []cli.List{countList},
			Examples: []cli.Example{
				{Does: "compare three recordings of one program", Command: "rtrace stats rtrace-raw-4711-0 rtrace-raw-4711-1 rtrace-raw-4711-2"},
				{Does: "compare file descriptors that were not closed", Command: "rtrace stats --resource fd 4711-0.rtrace 4711-1.rtrace"},
			},
		},
		setup: func(f *flags) runFunc {
			b := blockFlags{still: true, liveOnly: true}
			b.addAnyResource(f.group("Which allocations"))
			b.in.add(f.group("Input"))
			return func(ctx context.Context, s cli.Streams, args []string) error {
				if len(args) < 2 {
					return cli.Usagef("two traces at least, not %d", len(args))
				}
				return b.compare(ctx, s, args)
			}
		},
	}
}

// compare prints the changes from each trace to the next.
func (b *blockFlags) compare(ctx context.Context, s cli.Streams, files []string) error {
	var (
		before *sizes.Counts
		title  string
		cut    error // of the first incomplete trace
	)
	for i, file := range files {
		after := new(sizes.Counts)
		err := b.examineAllocations(ctx, s, "stats", []string{file}, after.Add, func() error { return nil })
		if !isIncomplete(err) {
			return err
		}
		if cut == nil {
			cut = err
		}
		if i > 0 {
			title = fmt.Sprintf("    Size   Delta   (%s -> %s block count)\n", printable.Name(filepath.Base(files[i-1])), printable.Name(filepath.Base(file)))
			var text strings.Builder
			text.WriteString(title)
			for _, d := range sizes.Deltas(before, after) {
				fmt.Fprintf(&text, "%8d%8d\t(%d -> %d)\n", d.Size, int64(d.After-d.Before), d.Before, d.After)
			}
			if _, err := fmt.Fprint(s.Out, text.String()); err != nil {
				return err
			}
		}
		before = after
	}
	// The title again, below a long list.
	_, err := fmt.Fprint(s.Out, title)
	return errors.Join(err, cut)
}
