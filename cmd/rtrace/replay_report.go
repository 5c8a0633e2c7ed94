package main

import (
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/internal/replay"
)

// replayReport is the output of 'rtrace replay', and of --json.
type replayReport struct {
	File  string       `json:"file"`
	Order string       `json:"order"`
	Touch string       `json:"touch"`
	Trace replay.Stats `json:"trace"`
	Rows  []replayRow  `json:"mallocs"`
}

// replayRow is one malloc. Its figures are medians.
type replayRow struct {
	Name       string       `json:"name"`
	Library    string       `json:"library"`
	Wall       uint64       `json:"wall_ns"`
	WallSpread uint64       `json:"wall_spread_ns"` // of the middle half of the runs
	CPU        uint64       `json:"cpu_ns"`
	CPUSpread  uint64       `json:"cpu_spread_ns"`
	Peak       uint64       `json:"peak_growth"` // growth of the RSS since before the first call
	PeakSpread uint64       `json:"peak_growth_spread"`
	Overhead   float64      `json:"peak_per_live"` // Peak divided by the live bytes at the trace's peak
	Faults     uint64       `json:"minor_faults"`
	VsFirst    ratios       `json:"vs_first"`
	Runs       []replay.Run `json:"runs"`
}

// ratios are figures of a row divided by those of the first row.
type ratios struct {
	Wall float64 `json:"wall"`
	CPU  float64 `json:"cpu"`
	Peak float64 `json:"peak_growth"`
}

func newReplayReport(file string, stats replay.Stats, o *replayOptions, rows []replay.Row) *replayReport {
	r := &replayReport{File: file, Order: o.order, Touch: o.touch, Trace: stats}
	for i := range rows {
		row := replayRow{Name: rows[i].Name, Runs: rows[i].Runs, Library: rows[i].Runs[0].Library}
		row.Wall, row.WallSpread = rows[i].Median(func(r *replay.Run) uint64 { return r.Wall })
		row.CPU, row.CPUSpread = rows[i].Median(func(r *replay.Run) uint64 { return r.CPU })
		row.Peak, row.PeakSpread = rows[i].Median((*replay.Run).Growth)
		row.Faults, _ = rows[i].Median(func(r *replay.Run) uint64 { return r.Faults })
		row.Overhead = ratio(row.Peak, stats.PeakBytes)
		r.Rows = append(r.Rows, row)
		first := &r.Rows[0]
		r.Rows[i].VsFirst = ratios{ratio(row.Wall, first.Wall), ratio(row.CPU, first.CPU), ratio(row.Peak, first.Peak)}
	}
	return r
}

// ratio returns 0 if there is nothing to compare with.
func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func (r *replayReport) writeJSON(w io.Writer) error {
	return writeJSON(w, r)
}

func (r *replayReport) writeText(w io.Writer) error {
	var p page
	t := &r.Trace
	p.line("trace", "%s: %s of %s; %s in %s live at the peak", r.File, quantity(t.Calls, "call", "calls"), quantity(uint64(t.Threads), "thread", "threads"),
		bytesText(t.PeakBytes), quantity(t.PeakBlocks, "block", "blocks"))
	p.line("replay", "%s; %s each, in turn; order: %s; touched: %s", quantity(uint64(t.Lanes), "thread", "threads"),
		quantity(uint64(len(r.Rows[0].Runs)), "run", "runs"), r.Order, r.Touch)
	r.writeLeftOut(&p)
	p.WriteString("\n")
	r.writeTable(&p)
	r.writeNotes(&p)
	_, err := io.WriteString(w, p.String())
	return err
}

// writeLeftOut prints how the replay differs from the trace.
func (r *replayReport) writeLeftOut(p *page) {
	t := &r.Trace
	var parts []string
	for _, x := range []struct {
		n         uint64
		one, many string
	}{
		{t.Unmatched, "free of a block from before the trace is left out", "frees of blocks from before the trace are left out"},
		{t.Adopted, "move of such a block is an allocation", "moves of such blocks are allocations"},
		{t.AddedFrees, "free is added where the trace lacks it", "frees are added where the trace lacks them"},
		{t.Other, "call for another resource than memory is left out", "calls for other resources than memory are left out"},
		{t.Processes, "call of another process is left out", "calls of other processes are left out"},
		{t.LostEvents, "event was lost while recording", "events were lost while recording"},
	} {
		if x.n > 0 {
			parts = append(parts, quantity(x.n, x.one, x.many))
		}
	}
	if len(parts) > 0 {
		p.line("differences", "%s", strings.Join(parts, "; "))
	}
}

func (r *replayReport) writeTable(p *page) {
	width := len("malloc")
	for i := range r.Rows {
		width = max(width, len(r.Rows[i].Name))
	}
	const heading = "  %10s %7s %8s %10s %8s %10s %8s %9s %9s  %s\n"
	fmt.Fprintf(p, "%-*s"+heading, width, "malloc", "time", "spread", "vs first", "cpu", "vs first", "peak", "vs first", "peak/live", "faults", "library")
	for i := range r.Rows {
		x := &r.Rows[i]
		fmt.Fprintf(p, "%-*s"+heading, width, x.Name,
			millis(x.Wall), x.spread(), times(x.VsFirst.Wall),
			millis(x.CPU), times(x.VsFirst.CPU),
			bytesText(x.Peak), times(x.VsFirst.Peak), times(x.Overhead), fmt.Sprint(x.Faults), x.Library)
	}
}

// spread prints how far apart the middle half of the runs is.
func (x *replayRow) spread() string {
	if len(x.Runs) == 1 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*ratio(x.WallSpread, x.Wall))
}

// writeNotes prints reasons to doubt the figures.
func (r *replayReport) writeNotes(p *page) {
	for i := range r.Rows {
		var live, failed uint64
		for j := range r.Rows[i].Runs {
			live, failed = max(live, r.Rows[i].Runs[j].Live), max(failed, r.Rows[i].Runs[j].Failed)
		}
		if failed > 0 {
			fmt.Fprintf(p, "note: %s: %s of a run failed for lack of memory\n", r.Rows[i].Name, quantity(failed, "call", "calls"))
		}
		if t := r.Trace.PeakBytes; live > t+t/20 {
			fmt.Fprintf(p, "note: %s: up to %s were live at once in a run, more than in the trace: threads overlapped differently (--order trace keeps the order)\n",
				r.Rows[i].Name, bytesText(live))
		}
	}
}

// quantity returns a number and what it counts.
func quantity(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func millis(ns uint64) string { return fmt.Sprintf("%.2f ms", float64(ns)/1e6) }

func times(x float64) string { return fmt.Sprintf("%.2f", x) }

// bytesText returns a size in a unit for people.
func bytesText(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	x, i := float64(n), 0
	for ; x >= 1024 && i < len(units)-1; i++ {
		x /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, units[i])
}
