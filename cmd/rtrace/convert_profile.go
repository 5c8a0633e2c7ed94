package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/report/dhat"
	"rtrace-bpf/internal/report/folded"
	"rtrace-bpf/internal/report/pprof"
	"rtrace-bpf/internal/report/speedscope"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// profileFormat is a format of allocations by stack, made from a whole trace.
type profileFormat struct {
	name, desc string
	suffixes   []string // of file names
	holds      content
	labels     bool // the format has a place for them
	value      bool // the format has one value, or shows one first
	open       func(out io.Writer, name string, o stacks.Options) profileSink
}

// profileFormats are the formats of profiles that convert writes.
var profileFormats = []profileFormat{
	{"pprof", "profile for go tool pprof and other readers of its format", []string{".pprof", ".pb.gz"}, binaryContent(".pb.gz"), true, true, sumsTo(pprof.Write)},
	{"folded", "one stack and a number per line, for flamegraph.pl and most viewers", []string{".folded"}, textContent, false, true, sumsTo(folded.Write)},
	{"speedscope", "profile for the viewer speedscope", []string{".speedscope.json"}, content{"a profile for a viewer", ".speedscope.json"}, false, true, sumsTo(speedscope.Write)},
	{"dhat", "profile for valgrind's dh_view.html", []string{".dhat.json"}, content{"a profile for a viewer", ".dhat.json"}, false, false, sumsTo(dhat.Write)},
	{"heaptrack", "each call, for heaptrack_print and heaptrack_gui", []string{".heaptrack", ".heaptrack.gz"}, content{"a file for heaptrack", ".heaptrack.gz"}, false, false, openHeaptrack},
}

// profileFormatNames returns the names of the formats.
func profileFormatNames() []string {
	names := make([]string, len(profileFormats))
	for i, f := range profileFormats {
		names[i] = f.name
	}
	return names
}

// profileNames returns the names of the formats as a list for people.
func profileNames() string { return strings.Join(profileFormatNames(), ", ") }

// findProfile returns the requested format, by its name or otherwise by the suffix of the
// output.
func findProfile(name, output string) (profileFormat, bool) {
	for _, f := range profileFormats {
		if f.name == name || name == "" && slices.ContainsFunc(f.suffixes, func(s string) bool { return strings.HasSuffix(output, s) }) {
			return f, true
		}
	}
	return profileFormat{}, false
}

// profileFlags are the flags of these formats.
type profileFlags struct {
	blockFlags
	names  nameFlags
	window windowFlags
	value  string
	caller string
	labels []string
	flags  *pflag.FlagSet

	shown stacks.Value

	resolver *resolve.Resolver // of the trace that was read
}

var profileLabels = []string{pprof.LabelThread, pprof.LabelFunction}

func (p *profileFlags) add(f *pflag.FlagSet) {
	p.flags = f
	f.Var(groups.Word(&p.value, stacks.InuseSpace.String(), stacks.ValueNames()...), "value", "write or show first `VALUE`: "+strings.Join(stacks.ValueNames(), ", "))
	p.names.add(f)
	f.Var(groups.Word(&p.caller, resolve.Program.String(), resolve.Policies()...), "caller", "begin stacks with the innermost frame of `WHAT`: program (that is not one of a wrapper, if there is one, as in rtrace leaks) or innermost (the same as --show-wrappers)")
	f.StringSliceVar(&p.labels, "labels", profileLabels, "pprof: distinguish samples by `LABELS`, separated by commas: thread, function (that allocated) or none")
	groups.OfferSeveral(f, "labels", ",", append([]string{"none"}, profileLabels...)...)
	p.addResource(f)
	p.window.add(f)
}

// given returns the name of one of the flags that was given, or "".
func (p *profileFlags) given() string {
	name := ""
	p.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			name = f.Name
		}
	})
	return name
}

// check checks flags whose values need more than parsing.
func (p *profileFlags) check() error {
	p.shown, _ = stacks.ParseValue(p.value)
	if policy, _ := resolve.ParsePolicy(p.caller); policy == resolve.Innermost {
		p.names.wrappers = true
	}
	if err := p.names.check(); err != nil {
		return err
	}
	if slices.Equal(p.labels, []string{"none"}) {
		p.labels = nil
	}
	for _, l := range p.labels {
		if !slices.Contains(profileLabels, l) {
			return cli.Usagef("--labels %s: there are %s, or none", l, strings.Join(profileLabels, ", "))
		}
	}
	return p.window.check()
}

// convert writes a profile of the trace that args name.
func (p *profileFlags) convert(ctx context.Context, s cli.Streams, format *profileFormat, output string, args []string) (err error) {
	if err := p.check(); err != nil {
		return err
	}
	name, err := oneFile(s, args)
	if err != nil {
		return err
	}
	out, err := create(s, output, name, format.holds)
	if err != nil {
		return err
	}
	defer func() { err = out.finish(err) }()
	if p.flags.Changed("value") && !format.value {
		return cli.Usagef("--value: a file in the format %s has all values", format.name)
	}
	var sink profileSink
	var about stacks.Profile
	read := func(in *input) (err error) {
		open := func(o stacks.Options) profileSink {
			sink = format.open(out, output, o)
			return sink
		}
		about, err = p.read(ctx, in, name, format, open, warner(s.Err, "convert"))
		return err
	}
	p.in.windows = format.value
	return p.in.examine(ctx, s, "convert", args, read, func(*input) error {
		shown, err := p.known(&about, s.Err)
		if err != nil {
			return err
		}
		err = sink.finish(&about, shown)
		if err == nil {
			p.names.hint(s.Err, p.resolver)
		}
		return err
	})
}

// known returns the value to show first, or an error if it is not known.
func (p *profileFlags) known(about *stacks.Profile, warnings io.Writer) (stacks.Value, error) {
	if !about.Estimated {
		return p.shown, nil
	}
	if !p.window.whole() {
		return 0, cli.Usagef("--from, --to and --context: the trace was recorded with --budget, and estimates are for all of it")
	}
	switch {
	case !p.flags.Changed("value"):
		p.shown = stacks.AllocSpace
	case !slices.Contains(about.Known(), p.shown):
		return 0, cli.Usagef("--value %s: the trace was recorded with --budget, so only alloc_space and alloc_objects are known; rtrace-bpf -e growth records what grows", p.shown)
	}
	warner(warnings, "convert")(errors.New("the trace was recorded with --budget: the profile has estimates of allocations, and no blocks in use"))
	return p.shown, nil
}

// read passes the records of the trace to the profile that open makes. It returns what is
// known about the whole, even with an error.
func (p *profileFlags) read(
	ctx context.Context, in *input, file string, format *profileFormat, open func(stacks.Options) profileSink, warn func(error),
) (about stacks.Profile, err error) {
	resolver, err := p.names.open(ctx, warn)
	if err != nil {
		return stacks.Profile{}, err
	}
	p.resolver = resolver
	defer func() { _ = resolver.Save() }() // without a cache, the next run is only slower
	head := &headReader{src: &introducer{in, resolver}}
	calls := newCallReader(head, p.resource)
	calls.window = p.window.open()
	p.observeLate(ctx, resolver, in, file)
	locator := newLocator(&p.names, resolver)
	sink := open(stacks.Options{
		Locate: locator.locate, Count: calls.window.counts,
		Threads:   format.labels && slices.Contains(p.labels, pprof.LabelThread),
		Functions: format.labels && slices.Contains(p.labels, pprof.LabelFunction),
	})
	head.rss = sink.Add
	became := ""
	err = each(calls, func(r *trace.Record) {
		if r.Kind == trace.KindExec && (r.PID == 0 || r.PID == head.pid) {
			became = strings.Clone(r.Exec.Name)
		}
		resolver.Observe(r)
		sink.Add(r)
	})
	calls.warn(warn)
	if err == nil {
		err = calls.missing()
	}
	about.Name, about.PID = cmp.Or(became, head.process.Name, filepath.Base(in.name)), head.pid
	if first := calls.stats.first; first != 0 {
		about.Start, about.Duration = head.wall(first), calls.stats.last-first
	}
	about.Estimated = calls.windows
	about.Comments = []string{"resource: " + calls.wanted}
	if n := calls.stats.lost; n > 0 {
		about.Comments = append(about.Comments, fmt.Sprintf("%s lost while recording", plural(n, "event")))
	}
	if u := sink.unknown(); u.Blocks > 0 {
		about.Comments = append(about.Comments, unknownText(amount(u)))
		warn(errors.New(unknownText(amount(u)) + "; the profile does not count them as in use"))
	}
	about.Threads = func(pid, tid int32) string { return calls.stats.threads[threadKey{pid, tid}] }
	return about, err
}

// headReader passes records on and keeps facts from the first ones.
type headReader struct {
	src     trace.Reader
	rss     func(*trace.Record) // gets the resident memory, which callReader leaves out; may be nil
	header  trace.Header
	process trace.Process
	pid     int32 // of process
}

// ReadRecord implements trace.Reader.
func (h *headReader) ReadRecord(r *trace.Record) error {
	if err := h.src.ReadRecord(r); err != nil {
		return err
	}
	switch {
	case r.Kind == trace.KindHeader && h.header == trace.Header{}:
		h.header = r.Clone().Header
	case r.Kind == trace.KindProcess && h.process == trace.Process{}:
		h.process, h.pid = r.Clone().Process, r.PID
	case r.Kind == trace.KindRSS && h.rss != nil:
		h.rss(r)
	}
	return nil
}

// wall converts a time of the trace's clock to ns since 1970; 0 if that is unknown.
func (h *headReader) wall(clock int64) int64 {
	if h.header.WallTime != 0 {
		return clock - h.header.ClockTime + h.header.WallTime
	}
	return h.process.WallTime
}

// checkProfile returns an error if a flag for profiles is used with a format of traces, or
// vice versa.
func (c *convert) checkProfile(isProfile bool, format string) error {
	if name := c.profile.given(); name != "" && !isProfile {
		return cli.Usagef("--%s is of the formats %s; %s is one of traces", name, profileNames(), format)
	}
	if isProfile && c.callers.policy != "" {
		return cli.Usagef("--callers: %s has no place for callers, mtrc and jsonl have", format)
	}
	return nil
}
