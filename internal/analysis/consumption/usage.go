// Package consumption computes the reports of sp-rtrace-timeline. They show for
// each type of resource, over the course of a trace and in each context of the
// program, the amounts allocated and not freed, the amounts allocated and freed
// in each slice of time, the lifetimes of blocks, and their sizes. The package
// reads a trace twice: a [Scan] finds the resources, the contexts and the
// duration, a [Usage] counts.
//
// A free of a block that is not live does not count. An allocation at the
// address of a live block ends that block: its free is missing. In a resource
// with reference counting, only the first allocation begins a block and only
// the last free ends it. After an exec there are no blocks. A block belongs to
// the contexts in which it was allocated, whichever it is freed in; a call of
// free belongs to those in which it was made.
//
// With Options.Legacy the numbers are those of the original program, which
// differ: see [Options].
package consumption

import (
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Report is a set of reports.
type Report uint8

// The reports.
const (
	Totals   Report = 1 << iota // what is allocated and not freed
	Activity                    // what is allocated and freed in a slice of time
	Lifetime                    // when each block was allocated and freed
	Count                       // number of blocks of each size
	Size                        // bytes in blocks of each size
)

// Reports lists all reports in the order in which they are shown.
var Reports = [...]Report{Totals, Activity, Lifetime, Count, Size}

var names = map[Report]string{
	Totals: "totals", Activity: "activity", Lifetime: "lifetime", Count: "histogram-count", Size: "histogram-size",
}

// String returns the name of a single report, as used in file names.
func (r Report) String() string { return names[r] }

// Has reports whether all of x is in the set.
func (r Report) Has(x Report) bool { return r&x == x }

// Timed reports whether a report of the set needs times.
func (r Report) Timed() bool { return r&(Totals|Activity|Lifetime) != 0 }

// Options of a Usage.
type Options struct {
	Reports Report
	Filter  Filter
	// Slice is the length of the slices of the activity report, in nanoseconds,
	// or in calls if the scan is by calls. 0 means a twentieth of the trace,
	// rounded down to one nonzero digit.
	Slice int64
	// Sink receives the series of the reports as numbers; nil for none.
	Sink Sink
	// Legacy reproduces the numbers of the original, with its errors: a default
	// slice of 200 ms, which advances by at most one step per call; peaks of
	// activity that include the next call; no reference counting; replaced
	// blocks stay; a block that is freed in another context is subtracted from
	// that context; a size filter passes blocks of size 0; the median of an
	// even number of blocks is one off; and there is no sum of freed and
	// unfreed.
	Legacy bool
	// Columns is the number of points of the curves; 0 means 1024.
	Columns int
}

// Usage counts the records of a trace. Its memory is bounded by the blocks that
// are live at a time, the distinct sizes of blocks, and the curves of each
// resource and context; in the activity report also by the number of slices,
// and in legacy mode by the calls in a slice.
type Usage struct {
	*plot
	gate  gate
	byID  map[uint32]*Kind // declared ones
	table *live.Table
	lives live.Values[life]
	clock clock
	calls uint64 // that passed the filter

	totals     totals
	activity   activity
	lifetimes  lifetimes
	histograms histograms
}

// event is a call that began or ended a block.
type event struct {
	kind    *Kind
	id      uint64
	size    uint64
	context uint32 // of the call
	at      int64  // on the axis of the reports: ns of the trace's clock, or calls
	place   int64  // on the axis of the curves, from 0
	born    life   // of the block that ends
}

// New returns a Usage of the scanned trace.
func New(s *Scan, o Options) (*Usage, error) {
	if o.Columns <= 0 {
		o.Columns = 1024
	}
	p := &plot{options: o, span: s.Span(), contexts: s.contexts, sink: o.Sink}
	if p.sink == nil {
		p.sink = nowhere{}
	}
	u := &Usage{
		plot: p, gate: newGate(o.Filter, o.Legacy), byID: make(map[uint32]*Kind), table: live.New(),
		totals: totals{plot: p}, activity: activity{plot: p}, lifetimes: lifetimes{plot: p}, histograms: histograms{p},
	}
	u.clock.legacy = o.Legacy
	if err := u.activity.divide(len(s.kinds)); err != nil {
		return nil, err
	}
	byType := make(map[string]*Kind)
	for _, r := range s.resources() {
		kind := byType[r.Type]
		if kind == nil {
			kind = u.kind(&r)
			byType[r.Type] = kind
		}
		u.byID[r.ID] = kind
	}
	return u, nil
}

// kind adds a type of resource.
func (u *Usage) kind(r *resource) *Kind {
	k := &Kind{Type: r.Type, number: uint32(len(u.kinds)), counted: r.counted && !u.options.Legacy, sizes: sizes{counts: make(map[uint64]*SizeCount)}}
	if r.Type == memory {
		k.padded.each = blockOverhead
	}
	u.kinds = append(u.kinds, k)
	return k
}

// Calls returns the number of calls that passed the filter and began or ended a
// block.
func (u *Usage) Calls() uint64 { return u.calls }

// Slice returns the length of the slices of the activity report.
func (u *Usage) Slice() int64 { return u.activity.width }

// Add processes a record. It keeps no reference to the contents of r.
func (u *Usage) Add(r *trace.Record) {
	switch r.Kind {
	case trace.KindHeader:
		u.clock.begin(&r.Header)
	case trace.KindCall:
		u.call(r)
	case trace.KindExec:
		u.exec()
	}
}

func (u *Usage) call(r *trace.Record) {
	c := &r.Call
	now, ok := u.clock.read(r.Time)
	if !ok {
		now = u.span.First
	}
	kind := u.byID[c.Resource]
	if kind == nil || !u.gate.kind(kind.Type) || !u.gate.passes(c, now, ok) {
		return
	}
	at, place := u.span.count(now)
	u.span.counted++
	e := event{kind: kind, id: c.ID, size: c.Size, context: c.Context, at: at, place: place}
	switch c.Op {
	case trace.OpAlloc:
		u.alloc(&e)
	case trace.OpFree:
		u.free(&e)
	}
}

// alloc begins a block, unless it only adds a reference.
func (u *Usage) alloc(e *event) {
	if e.kind.counted && u.table.Retain(e.kind.number, e.id) {
		return
	}
	value := u.lives.Add(life{at: e.at, place: e.place, context: e.context})
	if old, replaced := u.table.Insert(e.kind.number, e.id, e.size, value); replaced {
		u.replace(e, old)
	}
	u.calls++
	e.kind.begin(e)
	if u.options.Reports.Has(Totals) {
		u.totals.alloc(e)
	}
	if u.options.Reports.Has(Activity) {
		u.activity.add(e, true)
	}
}

// replace ends a block whose free is missing. In the original it stays.
func (u *Usage) replace(e *event, old live.Entry) {
	born := u.lives.Take(old.Value)
	if u.options.Legacy {
		return
	}
	gone := *e
	gone.size, gone.born = old.Size, born
	u.end(&gone, false)
}

// free ends a block if it is live.
func (u *Usage) free(e *event) {
	var (
		old live.Entry
		ok  bool
	)
	if e.kind.counted {
		old, ok = u.table.Release(e.kind.number, e.id)
		ok = ok && old.Refs == 0
	} else {
		old, ok = u.table.Remove(e.kind.number, e.id)
	}
	if !ok {
		return
	}
	e.size, e.born = old.Size, u.lives.Take(old.Value)
	u.calls++
	u.end(e, true)
}

// end counts a block that ended, by a call of free or otherwise.
func (u *Usage) end(e *event, call bool) {
	e.kind.end(e)
	if u.options.Reports.Has(Totals) {
		u.totals.free(e)
	}
	if call && u.options.Reports.Has(Activity) {
		u.activity.add(e, false)
	}
	if u.options.Reports.Has(Lifetime) {
		u.lifetimes.add(e.kind, e.id, e.size, e.born, e.at, e.place)
	}
}

// exec ends all blocks. They do not count as freed by calls.
func (u *Usage) exec() {
	if u.options.Legacy {
		return
	}
	at, place := u.span.latest(u.clock.last)
	if u.options.Reports.Has(Lifetime) {
		u.lifetimes.flush(u.table, &u.lives, at, place)
	}
	for _, k := range u.kinds {
		if k.used {
			u.totals.void(k, at, place)
		}
	}
	u.table.Clear()
	u.lives = live.Values[life]{}
}

// Finish completes the reports. No record may follow.
func (u *Usage) Finish() {
	at, place := u.span.end(u.options.Legacy, u.kinds)
	if u.options.Reports.Has(Lifetime) {
		u.lifetimes.flush(u.table, &u.lives, at, place)
	}
	if u.options.Reports.Has(Totals) {
		u.totals.finish()
	}
	if u.options.Reports.Has(Activity) {
		u.activity.finish()
	}
	if u.options.Reports.Has(Lifetime) {
		u.lifetimes.finish()
	}
	if u.options.Reports&(Count|Size) != 0 {
		u.histograms.finish()
	}
}
