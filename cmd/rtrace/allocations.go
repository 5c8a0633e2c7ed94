package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// addAnyResource adds the flag of commands that use all resources by default.
func (b *blockFlags) addAnyResource(f *pflag.FlagSet) {
	f.StringVar(&b.resource, "resource", "", "use only resources of the type `NAME`, as printed by rtrace info (default: all)")
}

// addAllocations adds the flags of commands that use all allocations, or with one of them
// only live ones.
func (b *blockFlags) addAllocations(f *pflag.FlagSet) {
	f.BoolVarP(&b.liveOnly, "filter-leaks", "l", false, "count only blocks that are still live at the end")
	b.addAnyResource(f)
}

// allocations passes the calls and resources of a trace to add: all calls, or (b.liveOnly)
// those whose blocks are still live at the end, by the rules of the post-processor or
// (b.still) of package live. Frames have the names that r knows. It passes reasons to doubt
// the figures, such as the number of unknown blocks, to warn.
func (b *blockFlags) allocations(src trace.Reader, r *resolve.Resolver, warn func(error), add func(*trace.Record)) error {
	calls := newCallReader(src, b.resource)
	calls.original = b.liveOnly && !b.still
	var (
		kept    trace.Reader = calls
		still   *filter.Leaks
		unknown amount
	)
	if b.liveOnly {
		still = filter.NewLeaks(calls)
		if b.still {
			still = filter.NewStill(calls)
		}
		still.Fill()
		kept = still
		for _, m := range calls.stats.mappings { // some of these come late in a trace
			r.Observe(m)
		}
	}
	names := resolve.NewReader(kept, r)
	var rec trace.Record
	var err error
	for {
		if err = names.ReadRecord(&rec); err != nil {
			break
		}
		if still != nil && rec.Kind == trace.KindCall && still.Unknown() {
			unknown.Blocks, unknown.Bytes = unknown.Blocks+1, unknown.Bytes+rec.Call.Size
			continue
		}
		add(&rec)
	}
	if errors.Is(err, io.EOF) {
		err = calls.missing()
	}
	calls.warnLost(warn)
	if unknown.Blocks > 0 {
		warn(errors.New(unknownText(unknown) + "; they are left out"))
	}
	calls.warnSums(warn)
	if b.liveOnly {
		calls.warnUnknown(warn)
	}
	return err
}

// examineAllocations opens the trace that args name, passes its calls to add, and then calls
// show, also if the trace is cut.
func (b *blockFlags) examineAllocations(ctx context.Context, s cli.Streams, command string, args []string,
	add func(*trace.Record), show func() error,
) error {
	read := func(in *input) error {
		resolver, err := b.resolver()
		if err != nil {
			return err
		}
		return b.allocations(in, resolver, warner(s.Err, command), add)
	}
	return b.in.examine(ctx, s, command, args, read, func(*input) error { return show() })
}
