package main

import (
	"context"
	"fmt"
	"os"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/sizes"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/trace"
)

// fromFunctionCommand adds up allocations through a function, like rtrace-from-function of
// sp-rtrace.
func fromFunctionCommand() command {
	return command{
		name: "from-function",
		page: cli.Page{
			Summary:  "add up the memory that was allocated through a function",
			Synopsis: []string{"[flags] NAME [FILE]"},
			About: "Prints how many allocations have NAME in their stack, and their bytes. NAME may be a part of a function's name, of a source file or library, of an " +
				"address in hexadecimal, or of an argument of the call. For calls without a stack, the caller in the trace is used. The overhead is an estimate of what " +
				"an allocator needs for each block.\n\n" +
				"All allocations of the trace count. With -l, or if the trace was filtered like that, only blocks that are still live at its end count.",
			Examples: []cli.Example{
				{Does: "show what leaks below parse_file", Command: "rtrace from-function -l -r parse_file rtrace-raw-4711-0"},
				{Does: "show how much a library allocated, from text of rtrace postproc", Command: "rtrace from-function libfoo.so < 4711-0.rtrace.txt"},
			},
		},
		setup: func(f *flags) runFunc {
			var b blockFlags
			b.addAllocations(f.group("Which allocations"))
			in := f.group("Input")
			b.source.addSource(in)
			b.in.add(in)
			return func(ctx context.Context, s cli.Streams, args []string) error {
				if len(args) == 0 || args[0] == "" {
					return cli.Usagef("the name of the function is missing; write rtrace from-function NAME FILE")
				}
				if info, err := os.Stat(args[0]); len(args) == 1 && err == nil && info.Mode().IsRegular() {
					return cli.Usagef("%s is a file, and the name of the function goes before it; write rtrace from-function NAME %s", args[0], args[0])
				}
				var found amount
				add := func(r *trace.Record) {
					if r.Kind == trace.KindCall && r.Call.Op != trace.OpFree && sites.Mentions(&r.Call, args[0]) {
						found.Blocks++
						found.Bytes += r.Call.Size
					}
				}
				return b.examineAllocations(ctx, s, "from-function", args[1:], add, func() error {
					_, err := fmt.Fprintf(s.Out, "\n%d allocations, totaling %d bytes + %d bytes overhead\noriginate from: '*%s*'!\n\n(overhead is estimated to be %d bytes/alloc)\n",
						found.Blocks, found.Bytes, sizes.Overhead*found.Blocks, printable.Name(args[0]), sizes.Overhead)
					return err
				})
			}
		},
	}
}
