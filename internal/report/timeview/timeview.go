// Package timeview draws a timeline.Timeline as an SVG picture: live bytes,
// live blocks, and the amounts allocated and freed in each interval.
package timeview

import (
	"fmt"
	"io"
	"slices"

	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/report/chart"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/svg"
	"rtrace-bpf/internal/report/theme"
)

// Options of a picture.
type Options struct {
	Name  string // of the program, for the title; empty if unknown
	Axis  timeline.Axis
	Width int // of the picture in pixels; 0 means 1200
}

// The colours of the curves.
var colours = []theme.Colour{
	{Name: "live", Light: "#1a5fb4", Dark: "#7fb2f0"},
	{Name: "range", Light: "#a9c8ea", Dark: "#2f4d73"},
	{Name: "system", Light: "#8a8f96", Dark: "#7b838d"},
	{Name: "allocated", Light: "#c05621", Dark: "#e79a5f"},
	{Name: "freed", Light: "#a8d5ba", Dark: "#2f5c45"},
}

// series holds the points as columns.
type series struct {
	edges, bytesLow, bytesHigh, bytesEnd       []uint64
	blocksLow, blocksHigh, blocksEnd, reserved []uint64
	allocated, freed                           []uint64
}

func columns(points []timeline.Point, width, end uint64) series {
	var s series
	for _, p := range points {
		s.edges = append(s.edges, p.X)
		s.bytesLow, s.bytesHigh, s.bytesEnd = append(s.bytesLow, p.Bytes.Min), append(s.bytesHigh, p.Bytes.Max), append(s.bytesEnd, p.Bytes.Last)
		s.blocksLow, s.blocksHigh, s.blocksEnd = append(s.blocksLow, p.Blocks.Min), append(s.blocksHigh, p.Blocks.Max), append(s.blocksEnd, p.Blocks.Last)
		s.reserved = append(s.reserved, p.Reserved)
		s.allocated, s.freed = append(s.allocated, p.Allocated.Bytes), append(s.freed, p.Freed.Bytes)
	}
	if n := len(s.edges); n > 0 {
		s.edges = append(s.edges, max(min(s.edges[n-1]+width, end), s.edges[n-1]))
	}
	return s
}

const (
	margin = 20
	head   = 92 // height of the title
	gap    = 62 // between panels, for axes and titles
)

// WriteSVG draws a timeline.
func WriteSVG(w io.Writer, t *timeline.Timeline, o Options) error {
	if o.Width == 0 {
		o.Width = 1200
	}
	total, points := t.Totals(), t.Points()
	along := chart.Axis{Max: total.Events, Text: figure.Count}
	unit, width := "events", figure.Count(t.Width())+" events"
	if t.Width() == 1 {
		width = "event"
	}
	if o.Axis == timeline.ByTime {
		along = chart.Axis{Max: uint64(total.Duration), Text: figure.Seconds}
		unit, width = "time since the first call", figure.Seconds(t.Width())
		if total.Began != 0 {
			unit += " at " + figure.Date(total.Began)
		}
	}
	along.Ticks = figure.Ticks(along.Max, 8)
	s := columns(points, t.Width(), along.Max)

	p := svg.New(colours)
	title := "Timeline"
	if o.Name != "" {
		title += " of " + o.Name
	}
	sums := fmt.Sprintf("%s events; allocated %s in %s blocks, freed %s in %s blocks; live at the end: %s in %s blocks",
		figure.Count(total.Events), figure.Bytes(total.Allocated.Bytes), figure.Count(total.Allocated.Blocks),
		figure.Bytes(total.Freed.Bytes), figure.Count(total.Freed.Blocks), figure.Bytes(total.Live.Bytes), figure.Count(total.Live.Blocks))
	p.Text("title text", margin, 30, title)
	p.Text("text", margin, 50, sums)

	y := float64(head)
	panel := func(title string, height float64, most uint64, bytes bool) *chart.Panel {
		c := &chart.Panel{
			X: margin + chart.Left, Y: y, W: float64(o.Width) - 2*margin - chart.Left, H: height, Title: title, Along: along,
			Up: chart.Axis{Max: most + most/8, Text: figure.Short},
		}
		if bytes {
			c.Up.Text, c.Up.Ticks = figure.Bytes, figure.ByteTicks(c.Up.Max, 5)
		} else {
			c.Up.Ticks = figure.Ticks(c.Up.Max, 4)
		}
		c.Frame(p)
		y += height + gap
		return c
	}
	live(p, panel, s, t, o)
	c := panel("Live blocks", 140, total.PeakBlocks, false)
	c.Band(p, "range", s.edges, s.blocksLow, s.blocksHigh)
	c.Steps(p, "stroke-live", s.edges, s.blocksEnd)
	if total.PeakBlocks > 0 {
		x, when := place(points, total.PeakBlocksEvent, o.Axis)
		c.Mark(p, "live", x, total.PeakBlocks, fmt.Sprintf("peak %s %s", figure.Count(total.PeakBlocks), when))
	}
	c = panel("Allocated and freed per "+width, 140, highest(s.allocated, s.freed), true)
	c.Area(p, "freed", s.edges, s.freed)
	c.Steps(p, "stroke-allocated", s.edges, s.allocated)
	chart.Legend(p, c.X+c.W-160, c.Y-9, [2]string{"allocated", "allocated"}, [2]string{"freed", "freed"})
	p.Text("small muted end", float64(o.Width)-margin, y-gap+38, unit)
	return p.Write(w, float64(o.Width), y-gap+50, title, sums)
}

// live draws the panel of live bytes, with the memory that the allocator got
// from the system if the trace records it.
func live(p *svg.Picture, panel func(string, float64, uint64, bool) *chart.Panel, s series, t *timeline.Timeline, o Options) {
	total := t.Totals()
	c := panel("Live bytes", 280, max(total.PeakBytes, highest(s.reserved)), true)
	c.Band(p, "range", s.edges, s.bytesLow, s.bytesHigh)
	items := [][2]string{{"live", "at the end of an interval"}, {"range", "range in an interval"}}
	if total.Reserved.Blocks > 0 {
		c.Steps(p, "stroke-system", s.edges, s.reserved)
		items = append([][2]string{{"system", "from the system"}}, items...)
	}
	c.Steps(p, "stroke-live", s.edges, s.bytesEnd)
	chart.Legend(p, c.X+c.W-160*float64(len(items)), c.Y-9, items...)
	if total.PeakBytes > 0 {
		x, when := place(t.Points(), total.PeakBytesEvent, o.Axis)
		c.Mark(p, "live", x, total.PeakBytes, fmt.Sprintf("peak %s %s", figure.Bytes(total.PeakBytes), when))
	}
}

// place returns the position of an event on the axis, as precisely as the
// points allow, and a description of it.
func place(points []timeline.Point, event uint64, axis timeline.Axis) (uint64, string) {
	if axis == timeline.ByEvent {
		return event, "after event " + figure.Count(event)
	}
	for _, p := range points {
		if p.First <= event && event <= p.Last {
			return uint64(p.Time), "after event " + figure.Count(event)
		}
	}
	return 0, ""
}

func highest(columns ...[]uint64) uint64 {
	most := uint64(1)
	for _, c := range columns {
		if len(c) > 0 {
			most = max(most, slices.Max(c))
		}
	}
	return most
}
