package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"rtrace-bpf/decoder/mtrc"
	"rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/decoder/sprtrace"
	"rtrace-bpf/decoder/swap"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

func undumpCommand() command {
	return command{
		name: "undump",
		page: cli.Page{
			Summary:  "convert the output of 'rtrace dump' back to a trace",
			Synopsis: []string{"[-o OUT] [FILE]"},
			About:    "FILE is the output of 'rtrace dump' for a binary trace. You may have edited it. Records as jsonl are already a trace; see 'rtrace convert'.",
			Examples: []cli.Example{
				{Does: "convert a dump to a trace", Command: "rtrace undump -o trace trace.dump"},
				{Does: "check that a trace survives both conversions", Command: "rtrace dump trace | rtrace undump | cmp - trace"},
			},
			Exit: []cli.ExitRow{
				{Code: cli.OK, Text: "done"},
				{Code: cli.Failed, Text: "failed, or the text is not a dump"},
				{Code: cli.Usage, Text: "the command line is wrong"},
			},
		},
		setup: func(f *flags) runFunc {
			var out string
			f.group("Output").StringVarP(&out, "output", "o", "", "write to the file `OUT`; - is standard output (the default)")
			return func(ctx context.Context, s cli.Streams, args []string) error {
				return undump(ctx, s, args, out)
			}
		},
	}
}

func undump(ctx context.Context, s cli.Streams, args []string, outName string) (err error) {
	in, name, stop, err := openBytes(ctx, s, args)
	if err != nil {
		return err
	}
	defer stop()
	out, err := create(s, outName, name, binaryContent(".trace"))
	if err != nil {
		return err
	}
	defer func() { err = out.finish(err) }()
	lines := bufio.NewReader(in)
	head, _ := lines.Peek(256) // an error occurs again with the first line
	restore := sprtrace.Undump
	if first, _, _ := strings.Cut(string(head), "\n"); mtrc.IsDump(first) {
		restore = mtrc.Undump
	} else if swap.IsDump(first) {
		restore = swap.Undump
	} else if nettrace.IsDump(first) {
		restore = nettrace.Undump
	}
	err = restore(out, lines)
	if _, ok := errors.AsType[*trace.SyntaxError](err); ok {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return err
}
