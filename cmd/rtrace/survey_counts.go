package main

import (
	"math/bits"
	"slices"

	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/trace"
)

// functionCounts counts the calls of each function.
type functionCounts struct {
	byKey   map[functionKey]*functionReport
	last    *functionReport
	lastKey functionKey
}

type functionKey struct {
	function string
	op       trace.Op
	resource uint32
}

func (f *functionCounts) add(c *trace.Call) {
	key := functionKey{c.Function, c.Op, c.Resource}
	if f.last == nil || key != f.lastKey {
		if f.last = f.byKey[key]; f.last == nil {
			f.last = &functionReport{Function: c.Function, Op: c.Op.String(), Resource: c.Resource}
			f.byKey[key] = f.last
		}
		f.lastKey = key
	}
	f.last.Calls++
	f.last.Bytes += c.Size
}

// resource holds the figures of one kind of resource.
type resource struct {
	trace.Resource
	group int // the number of the resource
	calls usage.Calls
}

// resourceTable holds the resources of a trace, declared or not.
type resourceTable struct {
	near  []*resource // by id, nil if unused
	far   map[uint32]*resource
	count int
}

// of returns the entry for an id; the usual ones are small numbers.
func (t *resourceTable) of(id uint32) *resource {
	if id >= 64 {
		res := t.far[id]
		if res == nil {
			res = t.add(id)
			t.far[id] = res
		}
		return res
	}
	for uint32(len(t.near)) <= id {
		t.near = append(t.near, nil)
	}
	if t.near[id] == nil {
		t.near[id] = t.add(id)
	}
	return t.near[id]
}

func (t *resourceTable) add(id uint32) *resource {
	t.count++
	return &resource{Resource: trace.Resource{ID: id}, group: t.count - 1}
}

// all returns the resources by id.
func (t *resourceTable) all() []*resource {
	all := make([]*resource, 0, t.count)
	for _, res := range t.near {
		if res != nil {
			all = append(all, res)
		}
	}
	far := len(all)
	for _, res := range t.far {
		all = append(all, res)
	}
	slices.SortFunc(all[far:], func(a, b *resource) int { return int(int64(a.ID) - int64(b.ID)) })
	return all
}

// threadSet holds the ids of threads.
type threadSet struct {
	ids  map[uint64]struct{}
	last uint64
}

// add adds a thread, by its id or by the program's own name for it.
func (t *threadSet) add(tid uint64) {
	if tid != t.last {
		t.last = tid
		t.ids[tid] = struct{}{}
	}
}

// count returns the number of threads. Id 0 stands for an unknown one.
func (t *threadSet) count() int {
	n := len(t.ids)
	if _, ok := t.ids[0]; ok {
		n--
	}
	return n
}

const day = 24 * 3600 * int64(1e9)

// timeSpan is the time from the first to the last of some records.
type timeSpan struct {
	first, last int64
	days        int64 // how often the clock of the day wrapped
}

// add adds the time of a record, or 0 if it has none. daily reports that times are of the
// day.
func (s *timeSpan) add(t int64, daily bool) {
	if t == 0 {
		return
	}
	if s.first == 0 {
		s.first = t
	} else if daily && s.last-t > day/2 {
		s.days++
	}
	s.last = t
}

// duration returns the length in nanoseconds, 0 without times.
func (s *timeSpan) duration() int64 {
	if s.first == 0 {
		return 0
	}
	return s.days*day + s.last - s.first
}

// stackCounts counts stacks by quality.
type stackCounts struct {
	quality  stackReport
	distinct map[uint64]struct{} // hashes
}

func (k *stackCounts) add(s *trace.Stack) {
	switch s.End {
	case trace.StackAbsent:
		k.quality.Absent++
	case trace.StackComplete:
		k.quality.Complete++
	case trace.StackTruncated:
		k.quality.Truncated++
	case trace.StackFailed:
		k.quality.Failed++
	default:
		k.quality.Unknown++
	}
	if s.FramePointer {
		k.quality.FramePointer++
	}
	if len(s.Frames) == 0 {
		return
	}
	h := uint64(len(s.Frames))
	for _, f := range s.Frames {
		hi, lo := bits.Mul64(h^f, 0x9e3779b97f4a7c15)
		h = hi ^ lo ^ bits.RotateLeft64(f, 32)
	}
	k.distinct[h] = struct{}{}
}

// report returns the counts.
func (k *stackCounts) report() stackReport {
	r := k.quality
	r.Distinct = uint64(len(k.distinct))
	return r
}
