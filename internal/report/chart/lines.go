package chart

import "rtrace-bpf/internal/report/svg"

// Line draws values as a line from point to point.
func (c *Panel) Line(p *svg.Picture, class string, along, up []uint64) {
	if len(along) == 0 {
		return
	}
	xy := make([]float64, 0, 2*len(along))
	for i, v := range along {
		xy = append(xy, c.x(v), c.y(up[i]))
	}
	p.Path("curve "+class, svg.Points(xy...))
}

// Span is a range of the horizontal axis at a value.
type Span struct {
	From, To uint64 // on the horizontal axis
	Up       uint64
}

// Spans draws horizontal lines, each at least two pixels long.
func (c *Panel) Spans(p *svg.Picture, class string, spans []Span) {
	if len(spans) == 0 {
		return
	}
	var path []byte
	for _, s := range spans {
		from, to, y := c.x(s.From), c.x(s.To), c.y(s.Up)
		if to < from+2 {
			to = from + 2
		}
		path = append(path, svg.Points(from, y, to, y)...)
	}
	p.Path("curve "+class, string(path))
}

// Level draws a horizontal line across the panel at a value.
func (c *Panel) Level(p *svg.Picture, class string, up uint64) {
	y := c.y(up)
	p.Line("thin "+class, c.X, y, c.X+c.W, y)
}

// Upright draws a vertical line across the panel.
func (c *Panel) Upright(p *svg.Picture, class string, along uint64) {
	x := crisp(c.x(along))
	p.Line("thin "+class, x, c.Y, x, c.Y+c.H)
}

// Row returns the row of pixels, from the top of the panel, that contains a
// value.
func (c *Panel) Row(up uint64) int { return int(c.y(up) - c.Y) }

// Bar is the bar of a category. Its parts are stacked from the bottom.
type Bar struct {
	Text  string
	Parts []uint64
}

// Bars draws bars side by side, each part in its class, with their texts turned
// below them. Along is not used.
func (c *Panel) Bars(p *svg.Picture, classes []string, bars []Bar) {
	width := min(c.W/float64(max(1, len(bars))), 90)
	for i, bar := range bars {
		x, below := c.X+float64(i)*width, uint64(0)
		for n, part := range bar.Parts {
			bottom, top := c.y(below), c.y(below+part)
			if part > 0 {
				p.Rect(classes[n], x+0.15*width, top, 0.7*width, max(1, bottom-top))
			}
			below += part
		}
		p.Turned("small muted end", x+width/2+4, c.Y+c.H+7, bar.Text)
	}
}
