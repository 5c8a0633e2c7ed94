package digest

import (
	"math/bits"

	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Use is the amounts of a stack, a function, a thread … for one type of
// resource.
type Use struct {
	Allocated live.Amount
	Live      live.Amount // at the end
	Unknown   live.Amount // at the end: may have been freed in a gap of the recording
	AtPeak    live.Amount // at the peak of live bytes, including unknown blocks
	Temporary live.Amount
}

// use is a Use in progress.
type use struct {
	Use
	// changed is the event of the last change of Live. If the peak lies between
	// it and the next change, Live is the amount at the peak.
	changed uint64
}

func (u *use) settle(event, peak uint64) {
	if peak >= u.changed && peak < event {
		u.AtPeak = u.Live
	}
	u.changed = event
}

// moment is the position of a call on both axes.
type moment struct {
	event    uint64
	time     int64
	one, two *timeline.Point // by event, by time
}

// bins is the number of bins: one for each length in bits of a 64-bit number,
// and one for 0.
const bins = 65

// Bin counts the blocks with a size or lifetime of From to To, both included.
type Bin struct {
	From, To uint64
	live.Amount
	Live live.Amount // only in bins of sizes: not freed
}

func timeBinsOf(all []live.Amount) []Bin {
	var out []Bin
	n := 0
	bounds := live.LifetimeBounds()
	for i := range all {
		b := Bin{From: bounds[i], To: ^uint64(0), Amount: all[i]}
		if i+1 < len(bounds) {
			b.To = bounds[i+1] - 1
		}
		out = append(out, b)
		if all[i].Blocks > 0 {
			n = i + 1
		}
	}
	return out[:n]
}

func sizeBin(n uint64) uint8 { return uint8(bits.Len64(n)) }

// binsOf returns the bins up to the last nonempty one.
func binsOf(all, unfreed *[bins]live.Amount) []Bin {
	var out []Bin
	n := 0
	for i := range all {
		b := Bin{Amount: all[i]}
		if i > 0 {
			b.From, b.To = 1<<(i-1), 1<<(i-1)-1+1<<(i-1)
		}
		if unfreed != nil {
			b.Live = unfreed[i]
		}
		out = append(out, b)
		if all[i].Blocks > 0 {
			n = i + 1
		}
	}
	return out[:n]
}

// resource is a Resource in progress.
type resource struct {
	Resource
	number          int
	byEvent, byTime *timeline.Series
	live            live.Amount
	sizes, unfreed  [bins]live.Amount
	ages            [bins]live.Amount
	times           []live.Amount // by steps of live.Lifetimes
	lives           live.Lifetimes
	threads         threads
	apis            apis
}

func newResource(name string, number, points int) *resource {
	return &resource{
		Resource: Resource{Type: name}, number: number,
		byEvent: timeline.NewSeries(points), byTime: timeline.NewSeries(points),
		times: make([]live.Amount, len(live.LifetimeBounds())),
		apis:  apis{byKey: make(map[apiKey]*API)},
	}
}

// stack counts the stacks of allocations by quality.
func (of *resource) stack(s *trace.Stack, caller *trace.Caller) {
	q := &of.Stacks
	switch {
	case len(s.Frames) == 0 && *caller != (trace.Caller{}):
		q.Callers++
	case len(s.Frames) == 0:
		q.Absent++
	case s.End == trace.StackTruncated:
		q.Truncated++
	case s.End == trace.StackFailed:
		q.Failed++
	default:
		q.Whole++
	}
	of.deepest(len(s.Frames))
}

func (of *resource) deepest(n int) { of.Stacks.Deepest = max(of.Stacks.Deepest, n) }

// allocated counts an allocated block. uses are those of its row and its thread.
func (of *resource) allocated(uses [2]*use, size uint64, at *moment) {
	for _, u := range uses {
		u.settle(at.event, of.PeakEvent)
		u.Allocated.AddBlock(size)
		u.Live.AddBlock(size)
	}
	of.Total.Allocated.AddBlock(size)
	of.live.AddBlock(size)
	at.one.Allocated.AddBlock(size)
	at.two.Allocated.AddBlock(size)
	bin := sizeBin(size)
	of.sizes[bin].AddBlock(size)
	of.unfreed[bin].AddBlock(size)
	of.Largest = max(of.Largest, size)
}

// freed counts a freed block. The lifetime of an unknown block is not counted,
// because the freed block may be another one.
func (of *resource) freed(uses [2]*use, l life, size uint64, temporary bool, fate live.Fate, at *moment) {
	of.Freed.AddBlock(size)
	at.one.Freed.AddBlock(size)
	at.two.Freed.AddBlock(size)
	if fate == live.Known {
		if temporary {
			for _, u := range uses {
				u.Temporary.AddBlock(size)
			}
			of.Total.Temporary.AddBlock(size)
		}
		of.ages[bits.Len64(at.event-l.event)].AddBlock(size)
		of.times[live.LifetimeStep(at.time-l.time)].AddBlock(size)
		of.lives.Ended(at.time - l.made)
	}
	of.ended(uses, live.Amount{Blocks: 1, Bytes: size}, sizeBin(size), at.event)
}

// ended subtracts ended blocks from the live amounts.
func (of *resource) ended(uses [2]*use, a live.Amount, bin uint8, event uint64) {
	for _, u := range uses {
		u.settle(event, of.PeakEvent)
		u.Live.Sub(a)
	}
	of.live.Sub(a)
	of.unfreed[bin].Sub(a)
}

// level records the live amount after a call.
func (of *resource) level(at *moment) {
	at.one.Level(at.event, at.time, of.live)
	at.two.Level(at.event, at.time, of.live)
	if of.live.Above(of.Peak) {
		of.Peak, of.PeakEvent, of.PeakTime = of.live, at.event, at.time
	}
	of.PeakBlocks = max(of.PeakBlocks, of.live.Blocks)
}
