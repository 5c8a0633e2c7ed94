package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/internal/wrapper"
	"rtrace-bpf/trace"
)

// memoryType is the type of resource of memory blocks.
const memoryType = "memory"

// residentType is the type of resource of resident memory, which rtrace-bpf records with -e
// growth.
const residentType = "resident"

// wantedType returns the type of resource that a command uses: memory stands for the only type of
// a trace that has no memory.
func wantedType(wanted string, declared []string) string {
	if wanted != memoryType || len(declared) == 0 || slices.ContainsFunc(declared[1:], func(t string) bool { return t != declared[0] }) {
		return wanted
	}
	return declared[0]
}

// blockFlags are the flags of commands that examine blocks and their call sites.
type blockFlags struct {
	in        inputFlags
	resource  string
	source    nameFlags // only where names come from
	mangled   bool
	addresses bool
	liveOnly  bool // use only allocations whose blocks are still live at the end
	still     bool // live blocks are those of package live, not of the post-processor
}

func (b *blockFlags) addNames(f *pflag.FlagSet) {
	b.source.addSource(f)
	f.BoolVarP(&b.addresses, "addresses", "a", false, "distinguish places within a function by address")
	f.BoolVar(&b.mangled, "no-demangle", false, "print mangled names of callers")
}

func (b *blockFlags) addInput(f *pflag.FlagSet) {
	b.addResource(f)
	b.in.add(f)
}

func (b *blockFlags) addResource(f *pflag.FlagSet) {
	f.StringVar(&b.resource, "resource", memoryType, "use the resources of the type `NAME`, as printed by rtrace info; a trace with only one type needs no --resource")
}

// framer makes frames of stacks; r knows the mappings.
func (b *blockFlags) framer(r *resolve.Resolver) sites.Framer {
	n := nameFlags{mangled: b.mangled, list: new(wrapper.List)}
	return n.framer(r)
}

// resolver returns a resolver that opens files, unless --no-resolve is given. Then it uses
// only the modules in the trace itself.
func (b *blockFlags) resolver() (*resolve.Resolver, error) {
	if err := b.source.check(); err != nil {
		return nil, err
	}
	return b.source.open(context.Background(), nil) // it asks no servers
}

// callReader passes on the records of a trace. Of the calls, it passes on only those of one
// type of resource, or all if wanted is empty. If times are times of day, it makes them
// continue at midnight. A file may hold several traces, each with a header, as written by
// forked processes of mpatrol. If they do not name their process, that of the second trace
// is called -1, that of the third -2, and so on.
//
// After the end of its window it passes on no calls, and of the other records only mappings
// that come late.
//
// Of the other records it passes on those that affect blocks and mappings. Readers thus need
// no memory for threads that ended, or for growths of the heap.
type callReader struct {
	src       trace.Reader
	asked     string
	wanted    string            // wantedType of asked
	resources map[uint32]string // types of the declared resources
	clock     dayClock
	trace     int32   // traceOf the last call
	seq       *uint64 // of that trace, in stats.seq
	stats     callStats
	window    *window
	passedCalls
	filter   string // of the first header
	windows  bool   // the trace was recorded in windows
	original bool   // live blocks are those of an original program, which does not know gaps
}

// dayClock makes times of the day continue at midnight.
type dayClock struct {
	daily bool
	days  int64
	last  int64 // as in the trace
}

// at returns the time of the next record.
func (c *dayClock) at(t int64) int64 {
	if c.daily && c.last-t > day/2 {
		c.days++
	}
	c.last = t
	return t + c.days*day
}

// passedCalls counts the calls that were passed on.
type passedCalls struct {
	passed  uint64
	frees   uint64 // or moves
	allocs  uint64
	bytes   uint64          // of all allocations, modulo 2^64
	beyond  bool            // sums of bytes exceed 2^64
	sized   bool            // one of the allocations had a size
	sampled map[uint32]bool // resources with samples of their allocations
	samples bool            // such an allocation was passed on
}

// add counts a call.
func (p *passedCalls) add(call *trace.Call) {
	p.passed++
	if call.Op == trace.OpFree || call.Op == trace.OpMove {
		p.frees++
	}
	if call.Op == trace.OpAlloc || call.Op == trace.OpMove {
		p.allocs++
		p.bytes += call.Size
		p.beyond = p.beyond || p.bytes < call.Size
		p.sized = p.sized || call.Size != 0
		p.samples = p.samples || len(p.sampled) > 0 && p.sampled[call.Resource]
	}
}

// callStats are the counts of a callReader.
type callStats struct {
	traces      int32             // headers
	seq         map[int32]*uint64 // Seq of the last call of each trace, by traceOf
	first, last int64             // times of calls; 0 if there are none
	lost        uint64            // events that may be frees or allocations
	gaps        uint64            // gaps in the recording
	missing     time.Duration     // duration of these gaps
	nameless    uint64            // mappings and names of threads that became known late
	mappings    []*trace.Record   // and their modules
	threads     map[threadKey]string
}

type threadKey struct{ pid, tid int32 }

// traceOf returns, for the id of a process, which trace of the file it is in: 0 is the
// first, -1 the second, and so on.
func traceOf(pid int32) int32 { return min(pid, 0) }

// age returns the number of calls since the given one.
func (s *callStats) age(r *trace.Record) uint64 { return *s.seq[traceOf(r.PID)] - r.Call.Seq }

func newCallReader(src trace.Reader, wanted string) *callReader {
	return &callReader{
		src: filter.NewJoinMoves(src), asked: wanted, wanted: wanted, resources: make(map[uint32]string), passedCalls: passedCalls{sampled: make(map[uint32]bool)},
		stats: callStats{seq: make(map[int32]*uint64), threads: make(map[threadKey]string)}, window: whole(),
	}
}

// ReadRecord implements trace.Reader.
func (c *callReader) ReadRecord(r *trace.Record) error {
	for {
		if err := c.src.ReadRecord(r); err != nil {
			return err
		}
		if r.Kind == trace.KindHeader {
			c.stats.traces++
			c.clock.daily = r.Header.Clock == trace.ClockDay
			if c.stats.traces == 1 {
				c.filter = strings.Clone(r.Header.Filter)
			}
		}
		if r.PID == 0 && c.stats.traces > 1 {
			r.PID = 1 - c.stats.traces
		}
		switch r.Kind {
		case trace.KindCall:
			if c.call(r); c.window.ended || !c.matches(r.Call.Resource) {
				continue
			}
			if c.add(&r.Call); !c.window.started {
				c.window.before = c.passed
			}
		case trace.KindResource:
			c.resources[r.Resource.ID] = r.Resource.Type
			c.wanted = wantedType(c.asked, slices.Collect(maps.Values(c.resources)))
			if r.Resource.Sampled {
				c.sampled[r.Resource.ID] = true
			}
		case trace.KindContext:
			c.window.context(&r.Context)
			continue
		case trace.KindMapping, trace.KindModule, trace.KindFunction:
			m := r.Clone()
			m.Call = trace.Call{}
			c.stats.mappings = append(c.stats.mappings, m)
		case trace.KindExec, trace.KindUnmapping:
			if c.window.ended {
				continue
			}
		case trace.KindWindow:
			c.windows = true
		case trace.KindCost:
			if !c.windows { // only estimates need it
				continue
			}
		case trace.KindThread:
			c.stats.threads[threadKey{r.PID, r.TID}] = strings.Clone(r.Thread.Name)
			continue
		case trace.KindLost:
			c.lost(r)
			if c.window.ended || !r.Lost.Gap() {
				continue
			}
		default:
			continue
		}
		return nil
	}
}

// lost counts a loss.
func (c *callReader) lost(r *trace.Record) {
	switch {
	case r.Lost.Gap():
		c.stats.gaps += r.Lost.Count
		if r.Lost.Since != 0 {
			c.stats.missing += time.Duration(max(0, r.Time-r.Lost.Since))
		}
	case r.Lost.HidesFrees():
		c.stats.lost += r.Lost.Count
	}
	if r.Lost.Reason == trace.LostNames {
		c.stats.nameless += r.Lost.Count
	}
}

func (c *callReader) call(r *trace.Record) {
	if r.Time != 0 {
		r.Time = c.clock.at(r.Time)
	}
	if c.window.call(r); c.window.ended {
		return
	}
	if n := traceOf(r.PID); c.seq == nil || n != c.trace {
		if c.stats.seq[n] == nil {
			c.stats.seq[n] = new(uint64)
		}
		c.trace, c.seq = n, c.stats.seq[n]
	}
	*c.seq = max(*c.seq, r.Call.Seq)
	if r.Time == 0 {
		return
	}
	if c.stats.first == 0 {
		c.stats.first = r.Time
	}
	c.stats.last = r.Time
}

// matches reports whether calls of a resource are wanted. Undeclared resources are memory.
func (c *callReader) matches(id uint32) bool {
	kind, declared := c.resources[id]
	if !declared {
		kind = memoryType
	}
	return kind == c.wanted || c.wanted == ""
}

// warn reports reasons to doubt the figures.
func (c *callReader) warn(w func(error)) {
	c.warnLost(w)
	c.warnSums(w)
	if c.leaksOnly() {
		w(errors.New("the trace contains only blocks that were live at its end, according to its header: other allocations are not known"))
	}
	c.warnUnknown(w)
}

// warnLost reports losses, and what follows from them.
func (c *callReader) warnLost(w func(error)) {
	if n := c.stats.gaps; n > 0 {
		text := "the recording has " + plural(n, "gap")
		if c.stats.missing > 0 {
			text += fmt.Sprintf(", of %s s in all", seconds(int64(c.stats.missing.Round(time.Millisecond))))
		}
		text += ": calls in that time are missing"
		if c.original {
			text += ", and blocks that were freed in it count as live"
		}
		w(errors.New(text))
	}
	if n := c.stats.lost; n > 0 {
		w(fmt.Errorf("%s lost while recording: up to that many live blocks may have been freed, and other blocks may be missing", plural(n, "event")))
	}
}

// leaksOnly reports whether the frees and freed blocks were removed from the trace.
func (c *callReader) leaksOnly() bool {
	return c.allocs > 0 && c.frees == 0 && !c.window.ended && strings.Contains(c.filter, "leaks")
}

// warnSums reports sums that are too large, and names that may be missing.
func (c *callReader) warnSums(w func(error)) {
	if n := c.stats.nameless; n > 0 {
		w(fmt.Errorf("the kernel dropped %s of mappings or thread names: stacks and threads before that may lack names; all calls are recorded", plural(n, "record")))
	}
	if c.beyond {
		w(errors.New("the sizes of all blocks exceed 2^64 bytes together: sums of bytes are modulo 2^64, and shares of bytes have no meaning"))
	}
}

// errSamples is the warning for the samples of a runtime, from which leaks are not known.
var errSamples = errors.New("the trace has samples: only some allocations, each with the bytes that it represents, and no frees. " +
	"Leaks and live blocks are therefore not known; all allocations count as live")

// warnUnknown reports what the trace does not contain.
func (c *callReader) warnUnknown(w func(error)) {
	if c.allocs == 0 {
		return
	}
	if c.samples {
		w(errSamples)
	} else if c.frees == 0 && c.wanted != residentType && !c.windows && !c.window.ended && !c.leaksOnly() {
		// There may be frees after the window, and pages may all stay resident.
		until := " until its address is allocated again"
		if c.original {
			until = ""
		}
		w(errors.New("the trace has no frees: whether a block was freed is not known, and each block counts as live" + until))
	}
	if !c.sized {
		w(errors.New("the trace has no sizes: only numbers of blocks are meaningful"))
	}
}

// missing returns an error if the trace has resources but not the wanted type, or not the
// window.
func (c *callReader) missing() error {
	if err := c.window.missing(); err != nil {
		return err
	}
	types := slices.Sorted(maps.Values(c.resources))
	if c.wanted == memoryType || c.wanted == "" || slices.Contains(types, c.wanted) {
		return nil
	}
	if len(types) == 0 {
		types = []string{memoryType}
	}
	return cli.Usagef("--resource %s: the trace has none of this type; it has %s", c.wanted, strings.Join(slices.Compact(types), ", "))
}

// plural returns "1 block", "2 blocks".
func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// percent returns the share of a whole in per cent, with two decimals.
func percent(part, whole uint64) string { return fmt.Sprintf("%.2f", share(part, whole)) }

func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// printAll writes the given parts, with an empty line between them.
func printAll(w io.Writer, parts ...io.WriterTo) error {
	for i, p := range parts {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if _, err := p.WriteTo(w); err != nil {
			return err
		}
	}
	return nil
}
