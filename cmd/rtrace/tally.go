package main

import (
	"context"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// tallyFlags are the flags of commands that add up all blocks of a trace by a key.
type tallyFlags struct {
	groupFlags
	window  windowFlags
	minSize groups.Size
	json    bool
}

// check checks flags whose values need more than parsing.
func (o *tallyFlags) check() error {
	if err := o.readGroups(); err != nil {
		return err
	}
	return o.window.check()
}

// tally is the sums of one trace. Its memory grows with the live blocks, the groups and the
// distinct stacks.
type tally struct {
	groupTexts
	groups   *sites.Grouper
	pairs    *placeGroups // nil unless they are wanted; the groups are then pairs
	counter  *usage.Counter
	memo     sites.Memo
	resolver *resolve.Resolver
	calls    *callReader
	minSize  uint64
	all      bool          // including allocations before the window
	before   []usage.Usage // with all: of each group, where the window begins
	total    usage.Usage   // with all: of all groups, there
	begun    bool
	started  int64       // with all: start of the window, on the trace's clock
	earlier  usage.Calls // calls before the window

	estimates estimate.Groups // of the same groups, if the trace was recorded in windows
}

// tallyOptions are options of the commands, in addition to the flags.
type tallyOptions struct {
	file     string // of the input, if it is a file
	all      bool
	relative bool // addresses are those in the files, which are the same in each run
	pairs    bool // groups are pairs of a group by the flags, and one by line
	warn     func(error)
}

// tally reads a trace. Its result is usable even with an error.
func (o *tallyFlags) tally(ctx context.Context, in *input, t tallyOptions) (*tally, error) {
	resolver, err := o.names.open(ctx, t.warn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resolver.Save() }() // without a cache, the next run is only slower
	calls := newCallReader(&introducer{in, resolver}, o.resource)
	calls.window = o.window.open()
	o.observeLate(ctx, resolver, in, t.file)
	grouping := o.grouping(resolver)
	if t.relative {
		grouping.Relative = relative(resolver)
	}
	x := &tally{
		groupTexts: groupTexts{o.key, &calls.stats}, groups: sites.NewGrouper(grouping),
		resolver: resolver, calls: calls, minSize: uint64(o.minSize), all: t.all,
	}
	if t.pairs {
		x.pairs = newPlaceGroups(x.groups, grouping)
	}
	x.counter = usage.New(func(r *trace.Record) int {
		n := x.group(r)
		if n >= 0 {
			x.estimates.Add(n, r.Call.Size)
		}
		return n
	})
	err = each(calls, func(r *trace.Record) {
		resolver.Observe(r)
		x.add(r)
	})
	x.mark()
	o.resource = calls.wanted
	calls.warn(t.warn)
	if err == nil {
		err = calls.missing()
	}
	return x, err
}

func (x *tally) add(r *trace.Record) {
	x.mark()
	x.memo.Observe(r)
	x.estimates.Record(r)
	x.counter.Add(r)
	if !x.calls.window.started {
		x.earlier, x.started = x.counter.Calls(), x.calls.stats.last
	}
}

// mark keeps the sums where the window begins.
func (x *tally) mark() {
	if !x.all || x.begun || !x.calls.window.started {
		return
	}
	x.begun = true
	x.total = x.counter.Total()
	for n := range x.counter.Len() {
		x.before = append(x.before, x.counter.Of(n))
	}
}

// group returns the group of a block that begins.
func (x *tally) group(r *trace.Record) int {
	switch w := x.calls.window; {
	case r.Call.Size < x.minSize, !x.all && !w.counts(r), !w.inContext(r):
		return usage.None
	case x.key == sites.BySize || x.key == sites.ByThread || x.key == sites.ByProcess:
		return x.groups.Find(r)
	case x.pairs != nil:
		return x.memo.Number(r, x.pairs.find)
	}
	return x.memo.Number(r, x.groups.Find)
}

// relative returns a function that converts an address to the one in its file.
func relative(r *resolve.Resolver) func(pid int32, addr uint64) (uint64, string) {
	return func(pid int32, addr uint64) (uint64, string) {
		m, ok := r.Process(pid).Mapping(addr)
		if !ok {
			return addr, ""
		}
		if m.Base != 0 {
			return addr - m.Base, m.Path
		}
		return addr - m.Start, m.Path
	}
}
