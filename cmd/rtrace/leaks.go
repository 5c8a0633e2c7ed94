package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

// leaksCommand prints the blocks that are live at the end of a trace, like mleak.
func leaksCommand() command {
	return command{
		name: "leaks",
		page: cli.Page{
			Summary:  "print blocks still live at the end, by call site",
			Synopsis: []string{"[flags] [FILE]", "[flags] FILE|DIR..."},
			About: "Prints the blocks that are still live at the end of a trace, added up by call site. A block from realloc counts at the call of " +
				"realloc, with its new size. If the process executed another program, the blocks of the earlier program are gone. If the trace was started in a running " +
				"process, earlier blocks are not known.\n\n" +
				"Call sites whose blocks pile up come first, each with a verdict: how fast it grows, since when, and how many of its blocks were freed. The others are " +
				"left out then, unless --all or --top is given. A call site grows if it has allocated all the time, and blocks that are older than the others of the " +
				"site are not freed any more. This needs times and frees in the trace. Verdicts cover the whole recording up to --to; --by size, thread or process has " +
				"none.\n\n" +
				"A live block is not necessarily a leak. rtrace prints a line if the recording was short compared with the lifetimes of blocks, or if most live blocks " +
				"are young. It does so in two cases. First, at least 100 blocks from before the recording were freed in it, and these are at least half as many as the " +
				"live blocks. Second, more than half of the live blocks are younger than the usual lifetime. That is the time within which 99 of 100 freed blocks were " +
				"freed, rounded up to 1, 3, 10, 30 and so on. It is known if at least 100 blocks were freed.\n\n" +
				"Blocks are added up by the line that allocated them, or without debugging information by function. --by stack prints whole stacks. Wrappers such as operator " +
				"new, containers' functions and xmalloc are left out where a stack begins; see Names. The ten largest groups are printed, or all with --all or --top 0.\n\n" +
				"With several traces, or a directory of traces, the blocks of all are added up. The same call site in several traces is one row, with the number of " +
				"traces, hosts and services that it is in, and in how many it grows. --per prints rows for each of them instead. The first lines name the traces that " +
				"are incomplete, have gaps or lost events, or could not be read; with these, the exit status is 3.\n\n" +
				"Memory use grows with the number of live blocks and distinct stacks of one trace, and with the call sites of all.",
			Lists:  []cli.List{keyList, pointList, countList},
			Common: commonGroupFlags(cli.ListRow{Name: "all"}, cli.ListRow{Name: "min-age", Text: "leave out blocks younger than AGE at the end"}),
			Examples: []cli.Example{
				{Does: "show the largest leaks", Command: "rtrace leaks rtrace-raw-4711-0"},
				{Does: "show the stacks of the five largest", Command: "rtrace leaks --by stack --top 5 rtrace-raw-4711-0"},
				{Does: "leave out known leaks", Command: "rtrace leaks --suppressions lsan.supp rtrace-raw-4711-0"},
				{Does: "show which functions allocated blocks that are older than ten minutes", Command: "rtrace leaks --by function --min-age 10m rtrace-raw-4711-0"},
				{Does: "show what was allocated in the second minute and not freed by its end", Command: "rtrace leaks --from 1m --to 2m rtrace-raw-4711-0"},
				{Does: "list each block, with its stack up to four frames", Command: "rtrace leaks --blocks -n 4 rtrace-raw-4711-0"},
				{Does: "show what leaks in many traces, by service", Command: "rtrace leaks --per service web1 web2 web3"},
				{Does: "get one number for a script", Command: "rtrace leaks --json rtrace-raw-4711-0 | jq .bytes"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(leaksOptions)
			what := f.group("What to print")
			o.addGroups(what, sites.ByLine)
			o.flags = what
			what.BoolVar(&o.blocks, "blocks", false, "list each block")
			what.BoolVar(&o.all, "all", false, "print all call sites, each with its verdict, also if some of them grow")
			what.StringArrayVar(&o.suppressed, "suppressions", nil, "leave out blocks whose stacks match a rule in `FILE`, in the syntax of LeakSanitizer or valgrind; may be repeated")
			what.BoolVar(&o.unknown, "unknown", false, "print the unknown blocks instead of the live ones; see Counting")
			what.Var(&o.minSize, "min-size", "leave out blocks smaller than `BYTES` (suffixes K, M, G)")
			what.StringVar(&o.minAge, "min-age", "", "leave out blocks younger than `AGE` at the end of the trace, or at --to: a time such as 10s or 5m, or a number of calls")
			o.window.add(what)
			what.BoolVar(&o.json, "json", false, "print one JSON object instead of text")
			o.fleet.add(f.group("Several traces"))
			o.addGroupNames(f.group("Names"))
			o.addInput(f.group("Input"))
			return func(ctx context.Context, s cli.Streams, args []string) error {
				return o.run(ctx, s, args)
			}
		},
	}
}

type leaksOptions struct {
	groupFlags
	window  windowFlags
	fleet   fleetFlags
	blocks  bool
	unknown bool
	all     bool
	minSize groups.Size
	minAge  string
	json    bool
	flags   *pflag.FlagSet

	suppressed   []string // names of files
	suppressions *suppressions
	events       uint64        // --min-age in calls
	age          time.Duration // --min-age in time
}

// judged reports whether the groups consist of call sites, which have verdicts.
func (o *leaksOptions) judged() bool {
	return o.key == sites.ByStack || o.key == sites.ByModule || o.key.IsCaller()
}

// check checks flags whose values need more than parsing.
func (o *leaksOptions) check() error {
	if o.flags.Changed("max-stack") && !o.flags.Changed("by") {
		o.by = sites.ByStack.String()
	}
	err := o.readGroups()
	if err == nil {
		err = o.window.check()
	}
	if err == nil {
		o.suppressions, err = o.readSuppressions()
	}
	if err != nil || o.minAge == "" {
		return err
	}
	if o.events, err = strconv.ParseUint(o.minAge, 10, 64); err == nil {
		return nil
	}
	if o.age, err = time.ParseDuration(o.minAge); err != nil || o.age < 0 {
		return cli.Usagef("--min-age %s: write a time such as 10s or 5m, or a number of calls such as 1000", o.minAge)
	}
	return nil
}

func (o *leaksOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.fleet.several(args) {
		return o.runFleet(ctx, s, args)
	}
	if err := o.fleet.check(args); err != nil {
		return err
	}
	var r *leakReport
	read := func(in *input) (err error) {
		r, err = o.find(ctx, in, warner(s.Err, "leaks"))
		return err
	}
	return o.in.examine(ctx, s, "leaks", args, read, func(*input) error {
		if o.json {
			return writeJSON(s.Out, r.object())
		}
		err := r.print(s.Out)
		o.names.hint(s.Err, r.resolver)
		return err
	})
}

// find reads the trace. Its result is usable even with an error.
func (o *leaksOptions) find(ctx context.Context, in trace.Reader, warn func(error)) (*leakReport, error) {
	resolver, err := o.names.open(ctx, warn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resolver.Save() }() // without a cache, the next run is only slower
	account := rss.NewReader(&introducer{in, resolver})
	calls := newCallReader(account, o.resource)
	calls.window = o.window.open()
	engine := aggregate.New()
	kept := filter.NewFed(calls, engine, func() string { return calls.wanted })
	kept.Fill()
	o.resource = calls.wanted
	calls.warn(warn)
	r := &leakReport{groupTexts: groupTexts{o.key, &calls.stats}, options: o, doubtful: calls.samples || calls.frees == 0}
	r.young.Usual = kept.Finder().Lifetimes().Usual()
	if err := calls.missing(); err != nil {
		return r, err
	}
	if o.age > 0 && calls.stats.first == 0 && len(calls.stats.seq) > 0 {
		return r, cli.Usagef("--min-age %s: the trace has no times; give a number of calls", o.minAge)
	}
	r.resolver = resolver
	// As in postproc: some mappings come late in a trace.
	for _, m := range calls.stats.mappings {
		resolver.Observe(m)
	}
	o.suppressions.resolve(&o.names, resolver)
	grouping := o.grouping(resolver)
	grouping.Blocks = o.blocks
	r.groups = sites.NewGrouper(grouping)
	if !r.doubtful && !o.unknown && o.judged() {
		r.trends = newTrends(engine, o.resource, newSiteNamer(engine, grouping.Framer, resolver))
	}
	var rec trace.Record
	for {
		if err := kept.ReadRecord(&rec); err != nil {
			r.finish(kept.Finder())
			if o.resource == memoryType && o.window.whole() {
				r.rss = account.Growth(rss.Live{
					Blocks: r.all.Blocks, Bytes: r.all.Bytes, UnknownBlocks: r.unknown.Blocks, UnknownBytes: r.unknown.Bytes,
				})
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return r, err
		}
		if rec.Kind != trace.KindCall {
			resolver.Observe(&rec)
			o.suppressions.observe(&rec)
		} else if rec.Call.Op == trace.OpAlloc {
			inside := kept.Ordinal() > calls.window.before && calls.window.inContext(&rec)
			r.add(&rec, inside, kept.Unknown())
		}
	}
}
