package main

import (
	"context"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder/nettrace"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/symbol/resolve"
)

// nettraceFlags are the options for writing nettrace.
type nettraceFlags struct {
	version int
	view    string
	symbols bool
}

func (n *nettraceFlags) add(f *pflag.FlagSet) {
	f.IntVar(&n.version, "nettrace-version", nettrace.V4, "nettrace: the version of its container, `4|6`; all readers accept 4, which describes one process")
	f.Var(groups.Word(&n.view, nettrace.ViewNone, nettrace.ViewAllocTick), "nettrace-view", "nettrace: add events for `VIEW`: alloctick, so that PerfView's views of .NET memory count the bytes of each allocation")
	f.BoolVar(&n.symbols, "nettrace-symbols", false, "nettrace: name the functions of frames without names from the files of this machine, if they are those of the trace")
}

// check returns an error if the flags do not fit a format.
func (n *nettraceFlags) check(format string) error {
	switch {
	case n.version != nettrace.V4 && n.version != nettrace.V6:
		return cli.Usagef("--nettrace-version is 4 or 6, not %d", n.version)
	case n.symbols && format != "nettrace":
		return cli.Usagef("--nettrace-symbols: %s is not nettrace", format)
	}
	return nil
}

// encoding returns the encoder's options for records that are read from in. file is its
// name, empty for standard input.
func (n *nettraceFlags) encoding(ctx context.Context, in *input, file string, o decoder.Options) nettrace.Options {
	opts := nettrace.Options{Version: n.version, View: n.view}
	if n.symbols {
		r := resolve.New(resolve.Options{})
		if in.Format == "sprtrace" || in.Format == "text" {
			observeMappings(ctx, r, file, o) // they may come late
		}
		opts.Symbols = r
	}
	return opts
}
