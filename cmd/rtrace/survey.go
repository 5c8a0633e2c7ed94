package main

import (
	"slices"

	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

// survey is a trace.Writer that counts the figures of 'rtrace info'.
type survey struct {
	header  trace.Header
	process struct {
		known bool
		pid   int32
		trace.Process
	}
	kinds     [int(trace.KindEnd) + 1]uint64
	functions functionCounts
	resources resourceTable
	counter   *usage.Counter // with a group for each resource
	lost      map[string]*lostReport
	stacks    stackCounts
	modules   map[string]struct{}
	threads   threadSet
	times     timeSpan // of calls and samples
	rss       rss.Account
	windows   windowSums
	heap      *trace.Record      // the last state of the heap; nil for none
	about     *sidefile.HeapInfo // its comments
}

func newSurvey() *survey {
	v := &survey{
		functions: functionCounts{byKey: make(map[functionKey]*functionReport)},
		resources: resourceTable{far: make(map[uint32]*resource)},
		lost:      make(map[string]*lostReport),
		stacks:    stackCounts{distinct: make(map[uint64]struct{})},
		modules:   make(map[string]struct{}),
		windows:   windowSums{functions: make(map[string]*functionSums)},
		threads:   threadSet{ids: make(map[uint64]struct{})},
	}
	v.counter = usage.New(func(r *trace.Record) int { return v.resources.of(r.Call.Resource).group })
	return v
}

// Flush implements trace.Writer.
func (v *survey) Flush() error { return nil }

// Close implements trace.Writer.
func (v *survey) Close() error { return nil }

// WriteRecord implements trace.Writer.
func (v *survey) WriteRecord(r *trace.Record) error {
	if int(r.Kind) < len(v.kinds) {
		v.kinds[r.Kind]++
	}
	if n := v.kinds[trace.KindHeader]; r.PID == 0 && n > 1 {
		r.PID = 1 - int32(min(n, 1<<30)) // as in callReader
	}
	v.counter.Add(r)
	v.windows.record(r)
	if r.Kind != trace.KindCall {
		v.rss.Add(r)
	}
	switch r.Kind {
	case trace.KindCall:
		v.call(r)
	case trace.KindHeader:
		if v.kinds[trace.KindHeader] == 1 {
			v.header = r.Header
		}
	case trace.KindProcess:
		if !v.process.known {
			v.process.known, v.process.pid, v.process.Process = true, r.PID, r.Process
		}
	case trace.KindThread:
		v.threads.add(uint64(r.TID))
	case trace.KindModule:
		v.modules[r.Module.Path] = struct{}{}
	case trace.KindMapping:
		v.modules[r.Mapping.Path] = struct{}{}
	case trace.KindResource:
		res := v.resources.of(r.Resource.ID)
		res.Resource = r.Resource
	case trace.KindLost:
		v.loss(r)
	case trace.KindHeapInfo:
		v.heap = &trace.Record{Time: r.Time, HeapInfo: r.HeapInfo}
	case trace.KindComment:
		if about, ok := sidefile.ParseComment(r.Comment); ok {
			v.about = &about
		}
	case trace.KindSample:
		v.threads.add(uint64(r.TID))
		v.times.add(r.Time, v.header.Clock == trace.ClockDay)
		v.stacks.add(&r.Sample.Stack)
	}
	return nil
}

// loss counts a loss.
func (v *survey) loss(r *trace.Record) {
	l := v.lost[r.Lost.Reason]
	if l == nil {
		l = &lostReport{Reason: r.Lost.Reason, gap: r.Lost.Gap()}
		v.lost[r.Lost.Reason] = l
	}
	l.Count += r.Lost.Count
	if l.gap && r.Lost.Since != 0 {
		l.Duration += max(r.Time-r.Lost.Since, 0)
	}
}

func (v *survey) call(r *trace.Record) {
	c := &r.Call
	v.functions.add(c)
	v.times.add(r.Time, v.header.Clock == trace.ClockDay)
	if c.Thread != 0 {
		v.threads.add(c.Thread)
	} else {
		v.threads.add(uint64(r.TID))
	}
	v.stacks.add(&c.Stack)

	v.resources.of(c.Resource).calls.Add(c)
}

// report sums up the counts.
func (v *survey) report() *report {
	r := &report{
		Arch: v.header.Arch, BigEndian: v.header.BigEndian, PointerSize: v.header.PointerSize,
		Origin: v.header.Origin, Filter: v.header.Filter,
		Records:   []kindReport{},
		Functions: []functionReport{},
		Resources: []resourceReport{},
		Lost:      []lostReport{},
		Threads:   v.threads.count(),
		Modules:   len(v.modules),
		Unmatched: v.counter.Unmatched(),
		Replaced:  v.counter.Replaced().Blocks,
		Stacks:    v.stacks.report(),
		Time:      timeReport{First: v.times.first, Last: v.times.last, Clock: clockNames[v.header.Clock], Duration: v.times.duration()},
	}
	if v.process.known {
		r.Process = &processReport{
			PID: v.process.pid, Name: v.process.Name, WallTime: v.process.WallTime, Depth: v.process.Depth,
		}
	}
	for k, n := range v.kinds {
		if n > 0 {
			r.Records = append(r.Records, kindReport{trace.Kind(k).String(), n})
		}
	}
	for _, f := range v.functions.byKey {
		r.Functions = append(r.Functions, *f)
		r.Calls += f.Calls
	}
	slices.SortFunc(r.Functions, compareFunctions)
	for _, res := range v.resources.all() {
		r.addResource(res, v.counter.Of(res.group))
	}
	r.RSS = v.rss.Growth(r.liveMemory())
	r.Cost = newCostReport(v.windows.Cost())
	if v.windows.Any() {
		r.forWindows(&v.windows)
	}
	for _, l := range v.lost {
		if !l.gap && l.Reason != trace.LostNames {
			r.LostEvents += l.Count
		}
		r.Lost = append(r.Lost, *l)
	}
	slices.SortFunc(r.Lost, compareLost)
	return r
}

// clockNames describe the times of a trace.
var clockNames = map[trace.Clock]string{
	trace.ClockUnknown: "unknown", trace.ClockMonotonic: "monotonic", trace.ClockDay: "day", trace.ClockWall: "wall",
}
