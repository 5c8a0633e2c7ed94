package main

import (
	"context"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// tallyFlags are the flags of commands that add up all blocks of a trace by what
// they have in common.
type tallyFlags struct {
	groupFlags
	window  windowFlags
	minSize groups.Size
	json    bool
}

// check reads the flags that are no plain values.
func (o *tallyFlags) check() error {
	if err := o.checkGroups(); err != nil {
		return err
	}
	return o.window.check()
}

// tally is what was added up of one trace. Its memory is that of the blocks that
// are live at a time, and of the groups and distinct stacks.
type tally struct {
	groupTexts
	groups  *sites.Grouper
	counter *usage.Counter
	memo    sites.Memo
	calls   *callReader
	minSize uint64
	all     bool          // also what was allocated before the window
	before  []usage.Usage // with all: of each group where the window begins
	total   usage.Usage   // with all: of all groups there
	begun   bool
	started int64       // with all: when the window began, on the trace's clock
	earlier usage.Calls // those before the window
}

// tallyOptions are what commands ask for besides the flags.
type tallyOptions struct {
	file     string // of the input, if it is one
	all      bool
	relative bool // addresses are those in the files, as they are in each run
	warn     func(error)
}

// tally reads a trace and returns what was found, also with an error.
func (o *tallyFlags) tally(ctx context.Context, in *input, t tallyOptions) (*tally, error) {
	calls := newCallReader(in, o.resource)
	calls.window = o.window.open()
	resolver := o.resolver()
	o.observeLate(ctx, resolver, in, t.file)
	grouping := o.grouping(resolver)
	if t.relative {
		grouping.Relative = relative(resolver)
	}
	x := &tally{
		groupTexts: groupTexts{o.key, &calls.stats}, groups: sites.NewGrouper(grouping),
		calls: calls, minSize: uint64(o.minSize), all: t.all,
	}
	x.counter = usage.New(x.group)
	err := each(calls, func(r *trace.Record) {
		resolver.Observe(r)
		x.add(r)
	})
	x.mark()
	calls.warn(t.warn)
	if err == nil {
		err = calls.missing()
	}
	return x, err
}

func (x *tally) add(r *trace.Record) {
	x.mark()
	x.memo.Observe(r)
	x.counter.Add(r)
	if !x.calls.window.started {
		x.earlier, x.started = x.counter.Calls(), x.calls.stats.last
	}
}

// mark notes what there is where the window begins.
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
	}
	return x.memo.Number(r, x.groups.Find)
}

// relative returns a function that says where in its file an address is.
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
