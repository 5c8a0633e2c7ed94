package watch

import (
	"sync"
	"time"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/topview"
)

// View is a Watch for the views of topview. It keeps the names of call sites. Its methods
// may be called by several goroutines.
type View struct {
	*Watch
	mu     sync.Mutex
	places map[int]topview.Place // by call site
}

var _ topview.Source = (*View)(nil)

// NewView returns a View of a new Watch.
func NewView() *View { return &View{Watch: New(), places: make(map[int]topview.Place)} }

// Of returns what a view shows of a snapshot. elapsed is the time since tracing began.
func (v *View) Of(s Snapshot, elapsed time.Duration) *topview.Snapshot {
	out := &topview.Snapshot{State: s.State, Elapsed: elapsed, Suspects: s.Suspects, Judged: s.Judged}
	for i := range s.Processes {
		p := &s.Processes[i]
		x := topview.Process{
			PID: p.PID, Name: p.Name, RSS: p.Measure.RSS, Lost: p.Measure.Lost, Losses: p.Measure.Losses, Pauses: p.Measure.Pauses,
			Share: p.Measure.Cost.Share, Whole: p.Measure.Factor, Execs: p.Execs, Ended: p.Ended,
		}
		if p.Measure.Cost.Rate > 0 {
			x.Factor, x.AtLeast = p.Measure.Cost.Slower()
		}
		out.Processes = append(out.Processes, x)
	}
	return out
}

// Place returns the place of a call site, if it has been named.
func (v *View) Place(site int) (topview.Place, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, ok := v.places[site]
	return p, ok
}

// Name names a call site, which may take seconds.
func (v *View) Name(site int) {
	p := v.Watch.Place(site)
	place := topview.Place{Function: p.Function, File: p.File, Line: p.Line, Library: p.Library, Callers: p.Callers, Stack: p.Stack, At: p.At}
	for _, f := range p.Frames {
		place.Frames = append(place.Frames, topview.Frame(f))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.places[site] = place
}

// NameRows names the call sites that the first rows of a model need, which may take seconds.
func (v *View) NameRows(m *topview.Model, rows int) {
	for missing := m.Missing(rows); len(missing) > 0; missing = m.Missing(rows) {
		for _, site := range missing {
			v.Name(site)
		}
		m.Refresh()
	}
}

// leading is how many rows are named for verdicts in addition to the suspects.
const leading = 3

// Verdicts names the suspects of a snapshot, which may take seconds, and returns lines of at
// most columns about them, or that there are none.
func (v *View) Verdicts(s Snapshot, columns int) []string {
	m := topview.New(v, topview.Options{By: topview.BySite, Order: topview.OrderLive})
	m.Update(v.Of(s, 0), true)
	v.NameRows(m, leading)
	return m.Verdicts(columns)
}

// Detail returns further figures of a call site.
func (v *View) Detail(site int) aggregate.Detail { return v.Watch.Detail(site) }
