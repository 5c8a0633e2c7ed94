package main

import (
	"math/bits"
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
	functions map[functionKey]*functionReport
	lastFunc  *functionReport
	lastKey   functionKey
	resources []*resource // by id, nil if unused
	far       map[uint32]*resource
	groups    int // of the counter: one for each resource
	counter   *usage.Counter
	lost      map[string]*lostReport
	stacks    map[uint64]struct{}
	quality   stackReport
	modules   map[string]struct{}
	threads   map[uint64]struct{}
	lastTID   uint64
	rss       rss.Account
	heap      *trace.Record      // the last state of the heap; nil for none
	about     *sidefile.HeapInfo // its comments

	first, last int64 // times of calls
	days        int64 // how often the clock of the day wrapped
}

type functionKey struct {
	function string
	op       trace.Op
	resource uint32
}

// resource holds the figures of one kind of resource.
type resource struct {
	trace.Resource
	group int
	calls usage.Calls
}

func newSurvey() *survey {
	v := &survey{
		functions: make(map[functionKey]*functionReport),
		far:       make(map[uint32]*resource),
		lost:      make(map[string]*lostReport),
		stacks:    make(map[uint64]struct{}),
		modules:   make(map[string]struct{}),
		threads:   make(map[uint64]struct{}),
	}
	v.counter = usage.New(func(r *trace.Record) int { return v.resource(r.Call.Resource).group })
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
		v.thread(uint64(r.TID))
	case trace.KindModule:
		v.modules[r.Module.Path] = struct{}{}
	case trace.KindMapping:
		v.modules[r.Mapping.Path] = struct{}{}
	case trace.KindResource:
		res := v.resource(r.Resource.ID)
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
		v.thread(uint64(r.TID))
		v.time(r.Time)
		v.stack(&r.Sample.Stack)
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

// thread counts a thread, by its id or by the program's own name for it.
func (v *survey) thread(tid uint64) {
	if tid != v.lastTID {
		v.lastTID = tid
		v.threads[tid] = struct{}{}
	}
}

// resource returns the entry for an id; the usual ones are small numbers.
func (v *survey) resource(id uint32) *resource {
	if id >= 64 {
		res := v.far[id]
		if res == nil {
			res = v.newResource(id)
			v.far[id] = res
		}
		return res
	}
	for uint32(len(v.resources)) <= id {
		v.resources = append(v.resources, nil)
	}
	if v.resources[id] == nil {
		v.resources[id] = v.newResource(id)
	}
	return v.resources[id]
}

func (v *survey) newResource(id uint32) *resource {
	v.groups++
	return &resource{Resource: trace.Resource{ID: id}, group: v.groups - 1}
}

func (v *survey) call(r *trace.Record) {
	c := &r.Call
	key := functionKey{c.Function, c.Op, c.Resource}
	if v.lastFunc == nil || key != v.lastKey {
		f := v.functions[key]
		if f == nil {
			f = &functionReport{Function: c.Function, Op: c.Op.String(), Resource: c.Resource}
			v.functions[key] = f
		}
		v.lastKey, v.lastFunc = key, f
	}
	v.lastFunc.Calls++
	v.lastFunc.Bytes += c.Size
	v.time(r.Time)
	if c.Thread != 0 {
		v.thread(c.Thread)
	} else {
		v.thread(uint64(r.TID))
	}
	v.stack(&c.Stack)

	v.resource(c.Resource).calls.Add(c)
}

const day = 24 * 3600 * int64(1e9)

func (v *survey) time(t int64) {
	if t == 0 {
		return
	}
	if v.first == 0 {
		v.first = t
	} else if v.header.Clock == trace.ClockDay && v.last-t > day/2 {
		v.days++
	}
	v.last = t
}

func (v *survey) stack(s *trace.Stack) {
	switch s.End {
	case trace.StackAbsent:
		v.quality.Absent++
	case trace.StackComplete:
		v.quality.Complete++
	case trace.StackTruncated:
		v.quality.Truncated++
	case trace.StackFailed:
		v.quality.Failed++
	default:
		v.quality.Unknown++
	}
	if s.FramePointer {
		v.quality.FramePointer++
	}
	if len(s.Frames) == 0 {
		return
	}
	h := uint64(len(s.Frames))
	for _, f := range s.Frames {
		hi, lo := bits.Mul64(h^f, 0x9e3779b97f4a7c15)
		h = hi ^ lo ^ bits.RotateLeft64(f, 32)
	}
	v.stacks[h] = struct{}{}
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
		Threads:   len(v.threads),
		Modules:   len(v.modules),
		Unmatched: v.counter.Unmatched(),
		Replaced:  v.counter.Replaced().Blocks,
		Stacks:    v.quality,
		Time:      timeReport{First: v.first, Last: v.last, Clock: clockNames[v.header.Clock]},
	}
	if _, ok := v.threads[0]; ok {
		r.Threads--
	}
	if v.first != 0 {
		r.Time.Duration = v.days*day + v.last - v.first
	}
	r.Stacks.Distinct = uint64(len(v.stacks))
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
	for _, f := range v.functions {
		r.Functions = append(r.Functions, *f)
		r.Calls += f.Calls
	}
	slices.SortFunc(r.Functions, compareFunctions)
	for _, res := range v.resources {
		if res != nil {
			r.addResource(res, v.counter.Of(res.group))
		}
	}
	far := make([]*resource, 0, len(v.far))
	for _, res := range v.far {
		far = append(far, res)
	}
	slices.SortFunc(far, func(a, b *resource) int { return int(int64(a.ID) - int64(b.ID)) })
	for _, res := range far {
		r.addResource(res, v.counter.Of(res.group))
	}
	r.RSS = v.rss.Growth(r.liveMemory())
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
