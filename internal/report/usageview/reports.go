package usageview

import (
	"fmt"

	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/internal/report/chart"
	"rtrace-bpf/internal/report/figure"
)

// drawn is a curve with its edges on the horizontal axis.
type drawn struct {
	edges           []uint64
	low, high, last []uint64
}

// draw returns the columns of a curve. Consecutive columns with the same
// constant value are one.
func draw(c *consumption.Curve, width int64) drawn {
	columns := c.Columns()
	edges := consumption.Edges(len(columns), width)
	var d drawn
	for i, x := range columns {
		if n := len(d.last); n > 0 && x.Min == x.Max && x.Last == d.last[n-1] && d.low[n-1] == d.high[n-1] {
			continue
		}
		d.edges = append(d.edges, edges[i])
		d.low, d.high, d.last = append(d.low, x.Min), append(d.high, x.Max), append(d.last, x.Last)
	}
	d.edges = append(d.edges, edges[len(columns)])
	return d
}

func most(curves ...*consumption.Curve) uint64 {
	var n uint64
	for _, c := range curves {
		if c == nil {
			continue
		}
		for _, x := range c.Columns() {
			n = max(n, x.Max)
		}
	}
	return n
}

// totals draws the live bytes and, below, the number of allocations so far.
func (p *page) totals() {
	width := max(1, p.span.Width())
	calls := p.span.Calls || p.span.ByCall
	p.axis(width, calls)
	var bytes, blocks uint64
	for _, k := range p.u.Kinds() {
		bytes, blocks = max(bytes, most(k.Sum, k.Overhead)), max(blocks, most(k.Allocs))
		for _, part := range k.Parts {
			bytes = max(bytes, most(part.Live))
		}
	}
	c := p.panel("Not freed", 300, bytes, p.bytes())
	c.Frame(p.Picture)
	below := p.panel("Allocations so far", 120, blocks, false)
	below.Frame(p.Picture)
	for _, k := range p.u.Kinds() {
		if k.Sum == nil {
			continue
		}
		class := p.colour()
		d := draw(k.Sum, width)
		c.Band(p.Picture, "range", d.edges, d.low, d.high)
		if k.Overhead != nil {
			o := draw(k.Overhead, width)
			c.Steps(p.Picture, "dots stroke-"+class, o.edges, o.last)
		}
		c.Steps(p.Picture, "stroke-"+class, d.edges, d.last)
		p.name(class, k.Type)
		if k.Overhead != nil {
			p.name(class, k.Type+" with 8 bytes for each block (dotted)")
		}
		for _, part := range k.Parts {
			if part.Live == nil || p.curves >= shown {
				continue
			}
			class := p.colour()
			x := draw(part.Live, width)
			c.Steps(p.Picture, "dash stroke-"+class, x.edges, x.last)
			p.name(class, k.Type+", "+part.Context.Name+" (dashed)")
		}
		a := draw(k.Allocs, width)
		below.Steps(p.Picture, "stroke-"+class, a.edges, a.last)
		if k.Peak.Live.Blocks > 0 {
			c.Upright(p.Picture, "dots stroke-"+class, uint64(k.Peak.Place))
			c.Mark(p.Picture, class, uint64(k.Peak.Place), k.Peak.Live.Bytes, p.peak(k.Peak.Live.Bytes, p.bytes(), k.Peak.At))
		}
	}
	p.unit(calls)
}

// few is the largest number of resource types for which peaks have texts; with
// more there is no room.
const few = 3

// peak returns the text of a peak.
func (p *page) peak(v uint64, bytes bool, at int64) string {
	text := figure.Short(v)
	switch {
	case len(p.u.Kinds()) > few:
		return ""
	case bytes:
		text = figure.Bytes(v)
	}
	return fmt.Sprintf("peak %s at %s", text, p.span.Text(at))
}

// activity draws the amounts allocated and freed in each slice.
func (p *page) activity() {
	width := p.span.Duration() + p.u.Slice()/2
	p.axis(max(1, width), p.span.Calls)
	per := " in " + slice(p.u)
	panels := []struct {
		title  string
		height float64
		curve  func(*consumption.Part) *consumption.Curve
		peak   func(*consumption.Rates) consumption.Rate
		value  func(consumption.Rate) uint64
	}{
		{
			"Allocated" + per, 220, func(x *consumption.Part) *consumption.Curve { return x.Rate },
			func(r *consumption.Rates) consumption.Rate { return r.Bytes }, func(r consumption.Rate) uint64 { return r.Bytes },
		},
		{
			"Allocations" + per, 130, func(x *consumption.Part) *consumption.Curve { return x.Allocs },
			func(r *consumption.Rates) consumption.Rate { return r.Allocs }, func(r consumption.Rate) uint64 { return r.Count },
		},
		{
			"Frees" + per, 130, func(x *consumption.Part) *consumption.Curve { return x.Frees },
			func(r *consumption.Rates) consumption.Rate { return r.Frees }, func(r consumption.Rate) uint64 { return r.Count },
		},
	}
	for i, x := range panels {
		p.curves = 0
		var top uint64
		for _, k := range p.u.Kinds() {
			for _, part := range k.Everything() {
				top = max(top, most(x.curve(part)))
			}
		}
		c := p.panel(x.title, x.height, top, i == 0 && p.bytes())
		c.Frame(p.Picture)
		for _, k := range p.u.Kinds() {
			parts := k.Everything()
			for n, part := range parts {
				if x.curve(part) == nil || p.curves >= shown {
					continue
				}
				class := p.colour()
				p.values(c, x.curve(part), class, width)
				name := k.Type
				if len(parts) > 1 {
					name += ", " + part.Context.Name
				}
				if i == 0 {
					p.name(class, name)
				}
				if r := x.peak(&k.Rates); n == len(parts)-1 && r.Found {
					c.Mark(p.Picture, class, uint64(r.At-p.span.First), x.value(r), p.peak(x.value(r), i == 0 && p.bytes(), r.At))
				}
			}
		}
	}
	p.unit(p.span.Calls)
}

// values draws the values of the activity report as a line from point to point.
func (p *page) values(c *chart.Panel, curve *consumption.Curve, class string, width int64) {
	columns := curve.Columns()
	edges := consumption.Edges(len(columns), width)
	var along, up []uint64
	for i, x := range columns {
		if x.Set {
			along, up = append(along, edges[i]), append(up, x.Max)
		}
	}
	if len(along) == 1 { // make a single point a line
		along, up = []uint64{0, along[0]}, []uint64{up[0], up[0]}
	}
	c.Line(p.Picture, "stroke-"+class, along, up)
}

// lifetime draws the lifetimes of blocks by size.
func (p *page) lifetime() {
	width := max(1, p.span.Width())
	calls := p.span.Calls || p.span.ByCall
	p.axis(width, calls)
	top := uint64(1)
	for _, k := range p.u.Kinds() {
		top = max(top, k.Largest.Size)
	}
	c := p.panel("Size", 440, top, p.bytes())
	if p.o.LogBase > 1 {
		logarithmic(&c.Up, c.Up.Max, p.o.LogBase)
	}
	c.Frame(p.Picture)
	for _, k := range p.u.Kinds() {
		if p.blocks() <= consumption.MaxLines {
			for _, l := range k.Lives.Lines {
				class := p.colour()
				c.Spans(p.Picture, "stroke-"+class, []chart.Span{{From: uint64(l.From), To: uint64(l.To), Up: l.Size}})
				p.name(class, fmt.Sprintf("%s 0x%x", k.Type, l.ID))
			}
		} else {
			for _, m := range k.Lives.Masks {
				p.mask(c, k, m, width)
			}
		}
		c.Level(p.Picture, "dash stroke-muted", k.Lives.Average)
		c.Level(p.Picture, "dots stroke-text", k.Lives.Median)
		if len(p.u.Kinds()) > 1 {
			continue // the table shows the numbers
		}
		p.name("muted", fmt.Sprintf("%s: average %d (dashed)", k.Type, k.Lives.Average))
		p.name("text", fmt.Sprintf("%s: median %d (dotted)", k.Type, k.Lives.Median))
	}
	p.unit(calls)
}

// blocks returns the number of all blocks.
func (p *page) blocks() uint64 {
	var n uint64
	for _, k := range p.u.Kinds() {
		n += k.Allocated.Blocks
	}
	return n
}

// mask draws the lifetimes of the blocks of a set of contexts. Blocks in the
// same row of pixels are drawn together.
func (p *page) mask(c *chart.Panel, k *consumption.Kind, m *consumption.Mask, width int64) {
	class := p.colour()
	sizes := make(map[int]uint64)
	rows := m.Rows(func(size uint64) int {
		row := c.Row(size)
		sizes[row] = max(sizes[row], size)
		return row
	})
	edges := consumption.Edges(m.Columns(), width)
	var spans []chart.Span
	for _, r := range rows {
		for _, run := range r.Runs {
			spans = append(spans, chart.Span{From: edges[run[0]], To: edges[run[1]], Up: sizes[r.Key]})
		}
	}
	c.Spans(p.Picture, "stroke-"+class, spans)
	p.name(class, k.Type+p.contexts(m))
}

// contexts returns the names of the contexts of a mask.
func (p *page) contexts(m *consumption.Mask) string {
	switch {
	case m.Others:
		return " in other contexts"
	case m.Context == 0:
		return ""
	}
	text := ""
	for _, c := range p.u.Contexts() {
		if c.ID&m.Context != 0 {
			text += ", " + c.Name
		}
	}
	if text == "" {
		text = fmt.Sprintf(", contexts %x", m.Context)
	}
	return text
}
