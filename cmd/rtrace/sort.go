package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/topmost"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/trace"
)

// sortCommand prints the live blocks with the highest addresses, like rtrace-sort of
// sp-rtrace.
func sortCommand() command {
	return command{
		name: "sort",
		page: cli.Page{
			Summary:  "print the live blocks with the highest addresses",
			Synopsis: []string{"[flags] FILE [N [LINES]]"},
			About: "Prints address and size of the N blocks (default 10) with the highest addresses among those that are still live at the end, in ascending order. Such " +
				"blocks keep the heap from shrinking. With LINES it also prints, for each block, at most that many lines of its arguments and stack.\n\n" +
				"Memory use grows with the number of live blocks.",
			Examples: []cli.Example{
				{Does: "show the blocks at the top of the heap", Command: "rtrace sort rtrace-raw-4711-0"},
				{Does: "show the call sites of the five topmost blocks", Command: "rtrace sort -r rtrace-raw-4711-0 5 8"},
			},
		},
		setup: func(f *flags) runFunc {
			b := blockFlags{liveOnly: true}
			b.addAnyResource(f.group("Which allocations"))
			in := f.group("Input")
			b.source.addSource(in)
			b.in.add(in)
			return func(ctx context.Context, s cli.Streams, args []string) error {
				blocks, lines := 10, 0
				for i, n := range []*int{&blocks, &lines} {
					if len(args) < 2+i {
						break
					}
					var err error
					if *n, err = strconv.Atoi(args[1+i]); err != nil || *n < 1 {
						return cli.Usagef("%s: not a whole number from 1 on; write rtrace sort FILE N, such as rtrace sort %s 10", args[1+i], args[0])
					}
				}
				if len(args) > 3 {
					return cli.Usagef("FILE, N and LINES at most, not %d arguments", len(args))
				}
				found := topmost.New(blocks)
				return b.examineAllocations(ctx, s, "sort", args[:min(1, len(args))], found.Add, func() error {
					return writeTopmost(s.Out, found.List(), lines)
				})
			}
		},
	}
}

// writeTopmost prints a line for each block, and at most that many more lines.
func writeTopmost(w io.Writer, blocks []*trace.Record, lines int) error {
	var out strings.Builder
	out.WriteString("address:   size:\n")
	for _, r := range blocks {
		c := &r.Call
		fmt.Fprintf(&out, "0x%x %d\n", c.ID, c.Size)
		left := lines
		line := func(format string, args ...any) {
			if left--; left >= 0 {
				out.WriteString("\t" + printable.Name(fmt.Sprintf(format, args...)) + "\n")
			}
		}
		for i := range c.Args {
			line("$%s = %s", c.Args[i].Name, c.Args[i].Value)
		}
		for i, addr := range c.Stack.Frames {
			if i < len(c.Stack.Names) && c.Stack.Names[i] != "" {
				line("0x%x %s", addr, c.Stack.Names[i])
			} else {
				line("0x%x", addr)
			}
		}
		if caller := c.Caller; len(c.Stack.Frames) == 0 && caller.Function != "" {
			line("%s at %s:%d", caller.Function, caller.File, caller.Line)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
