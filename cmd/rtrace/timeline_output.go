package main

import (
	"encoding/csv"
	"fmt"
	"io"

	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/table"
)

// writePoints prints the totals and a row for each interval.
func (o *timelineOptions) writePoints(w io.Writer, t *timeline.Timeline) error {
	total := t.Totals()
	var p page
	p.line("events", "%d", total.Events)
	if total.Duration > 0 {
		p.line("time", "%s s%s", seconds(total.Duration), from(total.Began))
	}
	amount := func(a live.Amount) string { return fmt.Sprintf("%s, %d bytes", plural(a.Blocks, "block"), a.Bytes) }
	p.line("allocated", "%s", amount(total.Allocated))
	p.line("freed", "%s", amount(total.Freed))
	p.line("live", "%s at the end", amount(total.Live))
	if total.Unknown.Blocks > 0 {
		p.line("unknown", "%s: live when the recording had a gap, in which frees were not recorded; the intervals include them", amount(total.Unknown))
	}
	p.line("peak", "%d bytes after event %d; %s after event %d", total.PeakBytes, total.PeakBytesEvent, plural(total.PeakBlocks, "block"), total.PeakBlocksEvent)
	if total.Reserved.Blocks > 0 {
		p.line("system", "%d bytes for blocks, %d for recording the trace", total.Reserved.Bytes, total.Internal.Bytes)
	}
	if total.Unmatched > 0 {
		p.line("unmatched", "%s of blocks whose allocation is not in the trace", plural(total.Unmatched, "free"))
	}
	points := table.New(o.columns(&total)...)
	for _, pt := range t.Points() {
		points.Row(o.row(&pt, &total)...)
	}
	p.WriteString("\n")
	if _, err := io.WriteString(w, p.String()); err != nil {
		return err
	}
	_, err := points.WriteTo(w)
	return err
}

// from returns the words for the time of the first call, in nanoseconds since 1970.
func from(began int64) string {
	if began == 0 {
		return ""
	}
	return ", from " + figure.Date(began)
}

// columns are the columns of the intervals.
func (o *timelineOptions) columns(total *timeline.Totals) []table.Column {
	columns := []table.Column{
		{Title: map[timeline.Axis]string{timeline.ByEvent: "event", timeline.ByTime: "time"}[o.axis]},
		{Title: "least", Group: "live bytes"},
		{Title: "most", Group: "live bytes"},
		{Title: "end", Group: "live bytes"},
		{Title: "most", Group: "live blocks"},
		{Title: "end", Group: "live blocks"},
		{Title: "blocks", Group: "allocated"},
		{Title: "bytes", Group: "allocated"},
		{Title: "blocks", Group: "freed"},
		{Title: "bytes", Group: "freed"},
	}
	if total.Reserved.Blocks > 0 {
		columns = append(columns, table.Column{Title: "system"})
	}
	return append(columns, table.Column{Left: true})
}

func (o *timelineOptions) row(p *timeline.Point, total *timeline.Totals) []string {
	x := number(p.First)
	if o.axis == timeline.ByTime {
		x = seconds(int64(p.X))
	}
	row := []string{
		x, number(p.Bytes.Min), number(p.Bytes.Max), number(p.Bytes.Last), number(p.Blocks.Max), number(p.Blocks.Last),
		number(p.Allocated.Blocks), number(p.Allocated.Bytes), number(p.Freed.Blocks), number(p.Freed.Bytes),
	}
	if total.Reserved.Blocks > 0 {
		row = append(row, number(p.Reserved))
	}
	if total.PeakBytes > 0 && p.First <= total.PeakBytesEvent && total.PeakBytesEvent <= p.Last {
		row = append(row, "peak")
	}
	return row
}

// writePointsCSV prints a line of names, and a line for each interval.
func (o *timelineOptions) writePointsCSV(w io.Writer, t *timeline.Timeline) error {
	out := csv.NewWriter(w)
	rows := [][]string{{
		"first_event", "last_event", "time_ns", "live_bytes_min", "live_bytes_max", "live_bytes", "live_blocks_min", "live_blocks_max", "live_blocks",
		"reserved_bytes", "allocated_blocks", "allocated_bytes", "freed_blocks", "freed_bytes",
	}}
	for _, p := range t.Points() {
		at := p.Time
		if o.axis == timeline.ByTime {
			at = int64(p.X)
		}
		rows = append(rows, []string{
			number(p.First), number(p.Last), number(uint64(at)), number(p.Bytes.Min), number(p.Bytes.Max), number(p.Bytes.Last),
			number(p.Blocks.Min), number(p.Blocks.Max), number(p.Blocks.Last), number(p.Reserved),
			number(p.Allocated.Blocks), number(p.Allocated.Bytes), number(p.Freed.Blocks), number(p.Freed.Bytes),
		})
	}
	return out.WriteAll(rows)
}

// writeLifetimes prints how long blocks lived.
func (o *timelineOptions) writeLifetimes(w io.Writer, t *timeline.Timeline) error {
	total, bins := t.Totals(), t.Lifetimes()
	if o.format == "csv" {
		rows := [][]string{{"from", "to", "blocks", "bytes"}}
		for _, b := range bins {
			rows = append(rows, []string{number(b.From), number(b.To), number(b.Blocks), number(b.Bytes)})
		}
		rows = append(rows, []string{"", "", number(total.Live.Blocks), number(total.Live.Bytes)})
		return csv.NewWriter(w).WriteAll(rows)
	}
	text := func(b timeline.Bin) (from, to string) {
		if o.axis == timeline.ByTime {
			return figure.Seconds(b.From), figure.Seconds(b.To)
		}
		return number(b.From), number(b.To)
	}
	heading := map[timeline.Axis]string{timeline.ByEvent: "lived events", timeline.ByTime: "lived"}[o.axis]
	out := table.New(table.Column{Title: "from", Group: heading}, table.Column{Title: "to", Group: heading},
		table.Column{Title: "blocks"}, table.Column{Title: "%"}, table.Column{Title: "bytes"}, table.Column{Title: "%"})
	row := func(from, to string, a live.Amount) {
		out.Row(from, to, number(a.Blocks), percent(a.Blocks, total.Allocated.Blocks), number(a.Bytes), percent(a.Bytes, total.Allocated.Bytes))
	}
	// If times are in milliseconds, blocks that lived less are in the row of 0, and the rows
	// up to a million nanoseconds are empty.
	begins := true
	for _, b := range bins {
		if begins && b.Blocks == 0 {
			continue
		}
		begins = begins && b.From == 0
		from, to := text(b)
		row(from, to, b.Amount)
	}
	row("to the end", "", total.Live)
	_, err := out.WriteTo(w)
	return err
}

// writeGroups prints the sums of each thread or function.
func (o *timelineOptions) writeGroups(w io.Writer, t *timeline.Timeline) error {
	groups := t.Threads()
	if o.by == "function" {
		groups = t.Functions()
	}
	if o.top > 0 {
		groups = groups[:min(o.top, len(groups))]
	}
	name := func(g *timeline.Group) string {
		switch {
		case o.by == "function":
			return g.Frame.String()
		case g.Thread == 0:
			return "unknown"
		}
		return number(g.Thread)
	}
	if o.format == "csv" {
		rows := [][]string{{o.by, "allocated_blocks", "allocated_bytes", "peak_blocks", "peak_bytes", "own_peak_bytes", "live_blocks", "live_bytes"}}
		for i := range groups {
			g := &groups[i]
			rows = append(rows, []string{
				name(g), number(g.Allocated.Blocks), number(g.Allocated.Bytes), number(g.AtPeak.Blocks), number(g.AtPeak.Bytes),
				number(g.Peak), number(g.Live.Blocks), number(g.Live.Bytes),
			})
		}
		return csv.NewWriter(w).WriteAll(rows)
	}
	total := t.Totals()
	out := table.New(
		table.Column{Title: "blocks", Group: "at the peak"}, table.Column{Title: "bytes", Group: "at the peak"}, table.Column{Title: "%", Group: "at the peak"},
		table.Column{Title: "bytes", Group: "own peak"},
		table.Column{Title: "blocks", Group: "allocated"}, table.Column{Title: "bytes", Group: "allocated"},
		table.Column{Title: "blocks", Group: "at the end"}, table.Column{Title: "bytes", Group: "at the end"},
		table.Column{Title: o.by, Left: true},
	)
	for i := range groups {
		g := &groups[i]
		out.Row(number(g.AtPeak.Blocks), number(g.AtPeak.Bytes), percent(g.AtPeak.Bytes, total.PeakBytes), number(g.Peak),
			number(g.Allocated.Blocks), number(g.Allocated.Bytes), number(g.Live.Blocks), number(g.Live.Bytes), name(g))
	}
	_, err := out.WriteTo(w)
	return err
}
