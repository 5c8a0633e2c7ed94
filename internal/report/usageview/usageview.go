// Package usageview draws the reports of package consumption as SVG pictures
// with a legend and a table of figures. It also returns the figures as a table.
package usageview

import (
	"fmt"
	"io"
	"math"
	"strings"

	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/internal/report/chart"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/svg"
	"rtrace-bpf/internal/report/theme"
)

// Options of a picture.
type Options struct {
	Name    string // program name for the title; empty if unknown
	Filters string // description of the filters; empty if there are none
	Width   int    // in pixels; 0 means 1200
	// Height is the height of the panels in percent of the default; 0 means
	// 100.
	Height int
	// LogBase is the base of the logarithmic size axis in the report of
	// lifetimes. The axis is linear if it is at most 1.
	LogBase float64
}

// The colours of curves, in their order, and of bars.
var colours = []theme.Colour{
	{Name: "c0", Light: "#1a5fb4", Dark: "#7fb2f0"},
	{Name: "c1", Light: "#c05621", Dark: "#e79a5f"},
	{Name: "c2", Light: "#2b7a4b", Dark: "#78c79a"},
	{Name: "c3", Light: "#8e3b8f", Dark: "#d38ad4"},
	{Name: "c4", Light: "#a3142e", Dark: "#f08a9a"},
	{Name: "c5", Light: "#0b7285", Dark: "#66c7d6"},
	{Name: "c6", Light: "#8a6d00", Dark: "#d9bd50"},
	{Name: "c7", Light: "#5c4bc9", Dark: "#a99df2"},
	{Name: "c8", Light: "#6b4f3a", Dark: "#c2a48c"},
	{Name: "c9", Light: "#4a6b12", Dark: "#a9cf65"},
	{Name: "range", Light: "#a9c8ea", Dark: "#2f4d73"},
	{Name: "unfreed", Light: "#d2503a", Dark: "#e0745f"},
	{Name: "freed", Light: "#8cc5a3", Dark: "#3f7d5c"},
}

const (
	palette = 10
	margin  = 20
	head    = 92
	gap     = 62
	line    = 15 // height of a line of the table
	// shown is the largest number of curves that are drawn and named.
	shown = 60
)

// page is a picture in progress.
type page struct {
	*svg.Picture
	u      *consumption.Usage
	o      Options
	span   *consumption.Span
	along  chart.Axis
	y      float64
	legend [][2]string
	curves int
}

// WriteSVG draws a report.
func WriteSVG(w io.Writer, u *consumption.Usage, r consumption.Report, o Options) error {
	if o.Width == 0 {
		o.Width = 1200
	}
	if o.Height == 0 {
		o.Height = 100
	}
	p := &page{Picture: svg.New(colours), u: u, o: o, span: u.Span(), y: head}
	p.Style(".mono{white-space:pre}.dash{stroke-dasharray:5 3}.dots{stroke-dasharray:2 3}\n")
	switch r {
	case consumption.Totals:
		p.totals()
	case consumption.Activity:
		p.activity()
	case consumption.Lifetime:
		p.lifetime()
	default:
		p.histogram(r)
	}
	title := Title(u, r)
	if o.Name != "" {
		title += " of " + o.Name
	}
	p.Text("title text", margin, 30, title)
	about := p.about()
	p.Text("text", margin, 50, about)
	p.names()
	if err := p.table(r); err != nil {
		return err
	}
	return p.Write(w, float64(o.Width), p.y+margin, title, about)
}

// about returns a description of the calls in the picture.
func (p *page) about() string {
	calls := figure.Count(p.span.Total) + " calls"
	if p.span.Total == 1 {
		calls = "1 call"
	}
	switch {
	case p.span.Calls:
	case p.span.ByCall:
		calls += ", all at " + p.span.Text(p.span.First)
	default:
		calls += fmt.Sprintf(" from %s to %s", p.span.Text(p.span.First), p.span.Text(p.span.Last))
	}
	if p.o.Filters != "" {
		calls += "; only " + p.o.Filters
	}
	return calls
}

// axis sets the horizontal axis of the following panels.
func (p *page) axis(width int64, calls bool) {
	p.along = chart.Axis{Max: uint64(max(1, width)), Text: figure.Seconds}
	if calls {
		p.along.Text = func(n uint64) string { return figure.Count(n + 1) }
	}
	p.along.Ticks = figure.Ticks(p.along.Max, 8)
}

// panel begins a panel with a height in pixels, for values up to most.
func (p *page) panel(title string, height float64, most uint64, bytes bool) *chart.Panel {
	top := most + most/8
	if top == most {
		top++
	}
	c := &chart.Panel{
		X: margin + chart.Left, Y: p.y, W: float64(p.o.Width) - 2*margin - chart.Left, H: height * float64(p.o.Height) / 100,
		Title: title, Along: p.along, Up: chart.Axis{Max: max(top, most), Text: figure.Short},
	}
	if bytes {
		c.Up.Text, c.Up.Ticks = figure.Bytes, figure.ByteTicks(c.Up.Max, 5)
	} else {
		c.Up.Ticks = figure.Ticks(c.Up.Max, 5)
	}
	p.y += c.H + gap
	return c
}

// unit writes the unit of the axis below the last panel.
func (p *page) unit(calls bool) {
	text := "time since " + p.span.Text(p.span.First)
	if calls {
		text = "calls"
	}
	p.y += 4
	p.Text("small muted end", float64(p.o.Width)-margin, p.y-gap+36, text)
	p.y += 44 - gap
}

// colour returns the class of the next curve, without "stroke-".
func (p *page) colour() string {
	p.curves++
	return fmt.Sprintf("c%d", (p.curves-1)%palette)
}

// name adds an entry to the legend.
func (p *page) name(class, text string) {
	if len(p.legend) < shown {
		p.legend = append(p.legend, [2]string{class, text})
	}
}

// names writes the legend in as many lines as needed.
func (p *page) names() {
	const left = margin + chart.Left
	x := float64(left)
	for i, item := range p.legend {
		width := 18 + 6.9*float64(len(item[1])) + 16
		if i == 0 || x+width > float64(p.o.Width)-margin {
			p.y += 18
			x = left
		}
		chart.Legend(p.Picture, x, p.y, item)
		x += width
	}
}

// table writes the table of figures.
func (p *page) table(r consumption.Report) error {
	var text strings.Builder
	if _, err := Table(p.u, r).WriteTo(&text); err != nil {
		return err
	}
	p.y += 30
	for row := range strings.Lines(text.String()) {
		p.Text("mono text", margin+chart.Left, p.y, strings.TrimRight(row, "\n"))
		p.y += line
	}
	return nil
}

// bytes reports whether all values are bytes of memory.
func (p *page) bytes() bool {
	kinds := p.u.Kinds()
	return len(kinds) == 1 && kinds[0].Type == "memory"
}

// logarithmic makes an axis from 1 to most logarithmic. Binary units are used
// only if the base is a power of two.
func logarithmic(a *chart.Axis, most uint64, base float64) {
	top := math.Log(max(2, float64(most)))
	a.Scale = func(v uint64) float64 { return math.Log(max(1, float64(v))) / top }
	a.Ticks = nil
	if l := math.Log2(base); l != math.Trunc(l) {
		a.Text = figure.Short
	}
	every := 1
	for top/math.Log(base)/float64(every) > 12 {
		every++
	}
	step := math.Pow(base, float64(every))
	for v := 1.0; v <= float64(most) && v < 1<<63; v *= step {
		if n := len(a.Ticks); n == 0 || uint64(v) > a.Ticks[n-1] {
			a.Ticks = append(a.Ticks, uint64(v))
		}
	}
}
