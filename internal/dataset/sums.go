package dataset

import (
	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/trace"
)

// verdicts are the texts of the column sites.verdict.
var verdicts = [...]string{
	trend.Unclear: "unclear", trend.Growing: "growing", trend.Balanced: "balanced",
	trend.Level: "level", trend.Varying: "varying", trend.Empty: "empty",
}

// sums writes the sums of call sites and resources.
func (w *Writer) sums(state *aggregate.State) {
	for i := range state.Sites {
		w.site(&state.Sites[i], state.Resources[state.Sites[i].Resource].Type)
	}
	for i := range state.Resources {
		w.resource(&state.Resources[i])
	}
}

func (w *Writer) site(s *aggregate.Site, resource string) {
	t := w.tables.sites
	row := t.add()
	row.Trace, row.Number, row.PID, row.Resource = w.source.ID, int64(s.Number)+1, s.PID, resource
	row.Stack = w.stackOfSite(s)
	row.AllocatedBlocks, row.AllocatedBytes = amounts(s.Allocated)
	row.TemporaryBlocks, row.TemporaryBytes = amounts(s.Temporary)
	row.FreedBlocks, row.FreedBytes = amounts(s.Freed)
	row.ReplacedBlocks, row.ReplacedBytes = amounts(s.Replaced)
	row.LiveBlocks, row.LiveBytes = amounts(s.Live)
	row.UnknownBlocks, row.UnknownBytes = amounts(s.Unknown)
	row.PeakBlocks, row.PeakBytes = amounts(s.Peak)
	row.AtPeakBlocks, row.AtPeakBytes = amounts(s.AtPeak)
	row.First, row.Last = s.First, s.Last
	if s.Oldest >= 0 {
		row.Oldest = t.number(s.Oldest)
	}
	of := w.engine.Trend(s.Number)
	row.Verdict = verdicts[of.Kind]
	if of.Kind == trend.Growing {
		row.BlocksPerSecond, row.BytesPerSecond = of.Blocks.PerSecond, of.Bytes.PerSecond
	}
}

// stackOfSite returns the number of the stack of a call site. It is the one of the site's
// first call.
func (w *Writer) stackOfSite(s *aggregate.Site) int64 {
	if s.Number < len(w.blocks.sites) {
		return w.blocks.sites[s.Number]
	}
	var r trace.Record
	w.engine.Place(s.Number, &r)
	return w.stackOf(s.PID, &r.Call.Stack, &r.Call.Caller)
}

func (w *Writer) resource(r *aggregate.Resource) {
	row := w.tables.resources.add()
	row.Trace, row.Resource, row.Description, row.Sampled = w.source.ID, r.Type, r.Desc, r.Sampled
	row.Calls, row.Allocations, row.Frees, row.Reallocs = int64(r.Calls.All), int64(r.Calls.Allocations), int64(r.Calls.Frees), int64(r.Calls.Reallocs)
	row.AllocatedBlocks, row.AllocatedBytes = amounts(r.Total.Allocated)
	row.TemporaryBlocks, row.TemporaryBytes = amounts(r.Total.Temporary)
	row.LiveBlocks, row.LiveBytes = amounts(r.Total.Live)
	row.UnknownBlocks, row.UnknownBytes = amounts(r.Total.Unknown)
	row.PeakBlocks, row.PeakBytes = amounts(r.Total.Peak)
	row.ReplacedBlocks, row.ReplacedBytes = amounts(r.Replaced)
	row.UnmatchedFrees = int64(r.Unmatched)
}

// trace writes the row of the trace itself.
func (w *Writer) trace(state *aggregate.State, complete bool) {
	s := &w.source
	t := w.tables.traces
	row := t.add()
	row.Trace, row.Schema, row.Source, row.Format, row.Origin, row.Arch = s.ID, Schema, s.File, s.Header.Format, s.Header.Origin, s.Header.Arch
	row.Clock, row.StartNS, row.Start = clocks[s.Header.Clock], s.Start, s.Start/1000
	row.PID, row.Process, row.Program, row.Path = s.PID, s.Process.Name, s.Process.Program(), s.Process.Path
	row.BuildID, row.Calls, row.Complete, row.NamesOfFiles = w.buildID(), w.calls, complete, s.NamesOfFiles
	if w.times.clock.Begun() {
		row.Duration = t.number(w.times.clock.Last())
	}
	for _, l := range state.Lost {
		if l.Gap {
			row.Gaps += int64(l.Count)
			row.GapTime += l.Missing
		}
	}
	row.LostEvents, row.Windows = w.lost, int64(w.estimates.Number())
	if g := state.Growth; g != nil {
		row.RSSStart, row.RSSEnd = t.number(int64(g.Start)), t.number(int64(g.End))
	}
}

var clocks = [...]string{trace.ClockUnknown: "unknown", trace.ClockMonotonic: "monotonic", trace.ClockDay: "day", trace.ClockWall: "wall"}
