package aggregate

import (
	"iter"
	"time"

	"rtrace-bpf/internal/analysis/loss"
	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/trace"
)

// State is all figures of an Engine at a time, except for the places and the
// details of call sites. It shares no memory with the Engine.
type State struct {
	Start    int64         // of the first call, on the trace's clock; 0 if unknown
	Time     int64         // of the last call
	Interval time.Duration // length of the last interval; 0 before the first
	Sites    []Site        // by number
	// Resources holds the types of resources that occurred.
	Resources []Resource
	// Others is the number of calls of further types of resources, which are in
	// no other figure.
	Others uint64
	Lost   loss.Table
	Gap    int64 // when the last gap in the recording ended; 0 if there was none
	// Growth compares the growth of the resident memory with the blocks of
	// memory that are live; nil if it is not known.
	Growth *rss.Growth
}

// Interval closes the current interval at a time on the trace's clock. Until the
// next call, Site.Change and Resource.Change are what happened in it. All
// records added so far count, so now should not be before the last one.
func (e *Engine) Interval(now int64) {
	at := e.clock.Since(now)
	e.interval = interval{at, at - e.interval.end}
	for i := range e.sites.all.Len() {
		s := e.sites.at(uint32(i))
		sum := Change{Allocated: e.resources.all[s.resource].sums.Of(int(s.group)).Allocated, Freed: s.freed}
		s.change, s.before = sum.since(s.before), sum
	}
	for _, of := range e.resources.all {
		sum := Change{Allocated: of.sums.Total().Allocated, Freed: of.Freed}
		of.Change, of.before = sum.since(of.before), sum
	}
}

// since returns the change since the given sums.
func (c Change) since(before Change) Change {
	c.Allocated.Sub(before.Allocated)
	c.Freed.Sub(before.Freed)
	return c
}

// Len returns the number of call sites.
func (e *Engine) Len() int { return e.sites.all.Len() }

// State returns all figures. It takes time for each site and each live block:
// some milliseconds for a million blocks.
func (e *Engine) State() *State {
	s := &State{
		Start: e.clock.First(), Time: e.clock.Last(), Interval: time.Duration(e.interval.length),
		Sites: make([]Site, e.sites.all.Len()), Resources: make([]Resource, len(e.resources.all)),
		Others: e.resources.others, Lost: make(loss.Table, len(e.facts.lost)), Gap: e.facts.gap,
	}
	for i := range e.sites.all.Len() {
		x := e.sites.at(uint32(i))
		s.Sites[i] = Site{
			Number: i, PID: x.pid, Resource: int(x.resource), Usage: e.resources.all[x.resource].sums.Of(int(x.group)),
			Freed: x.freed, Replaced: x.replaced, Change: x.change, First: x.first, Last: x.last, Oldest: -1,
		}
	}
	young := e.ages(s.Sites)
	for i := range s.Sites {
		x := &s.Sites[i]
		if e.resources.all[x.Resource].Sampled && x.Live.Blocks > 0 {
			x.Oldest = x.First // these blocks have no frees
		}
	}
	for reason, l := range e.facts.lost {
		own := *l
		s.Lost[reason] = &own
	}
	doubtful := e.facts.lost.Gaps()+e.facts.lost.HiddenFrees() > 0
	for i, of := range e.resources.all {
		r := of.Resource
		r.Total = of.sums.Total()
		r.Doubt = of.doubt(s.Time, young[i], doubtful)
		s.Resources[i] = r
		if r.Type == Memory {
			s.Growth = e.facts.rss.Growth(rss.Live{
				Blocks: r.Total.Live.Blocks, Bytes: r.Total.Live.Bytes,
				UnknownBlocks: r.Total.Unknown.Blocks, UnknownBytes: r.Total.Unknown.Bytes,
			})
		}
	}
	return s
}

// ages sets the oldest live block of each site, and returns for each resource
// how many of its live blocks are younger than usual.
func (e *Engine) ages(all []Site) (young []uint64) {
	young = make([]uint64, len(e.resources.all))
	since := make([]int64, len(young))
	for i, of := range e.resources.all {
		since[i] = e.clock.Last() - int64(of.lives.Usual())
	}
	for l := range e.lives.All() {
		if l.source == 0 || l.source&unknownLife != 0 {
			continue
		}
		s := &all[e.sites.sources.At(uint64(l.number())).site]
		if s.Oldest < 0 || l.time < s.Oldest {
			s.Oldest = l.time
		}
		if l.time > since[s.Resource] {
			young[s.Resource]++
		}
	}
	return young
}

// Detail returns the figures of a call site that State leaves out. It shares no
// memory with the Engine.
func (e *Engine) Detail(site int) Detail {
	s := e.sites.at(uint32(site))
	return Detail{Sizes: sizesOf(&s.sizes), Lifetimes: lifetimesOf(&s.lifetimes), Threads: e.sites.threadsOf(s)}
}

// Place stores the place of a call site in r, as a call that allocates there:
// the process, the stack and the caller. It shares no memory with the Engine.
func (e *Engine) Place(site int, r *trace.Record) {
	*r = trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc}}
	var (
		frames []uint64
		texts  []string
	)
	e.PlaceIn(site, r, &frames, &texts)
}

// PlaceIn sets the process, the stack and the caller of r to those of a call site. Frames and
// texts are appended to the given slices.
func (e *Engine) PlaceIn(site int, r *trace.Record, frames *[]uint64, texts *[]string) {
	s := e.sites.at(uint32(site))
	r.PID = s.pid
	r.Call.Stack, r.Call.Caller = s.process.places.Place(s.place, &s.process.names, frames, texts)
}

// Through yields the numbers of the sites of a process whose stacks have an
// address in [start, end) and get no other meaning by a mapping that replaced
// another one. A caller that names frames must name these sites before it passes
// an unmapping or an exec on to its table of mappings. For an exec, start is 0
// and end is the largest number.
func (e *Engine) Through(pid int32, start, end uint64) iter.Seq[int] {
	return e.sites.through(pid, start, end)
}
