// Package chart draws numbers along an axis into an SVG picture. It knows
// nothing about their meaning.
package chart

import (
	"strconv"
	"strings"

	"rtrace-bpf/internal/report/svg"
)

// Axis is an axis from 0 to Max.
type Axis struct {
	Max   uint64
	Ticks []uint64
	Text  func(uint64) string // label of a tick
	// Scale returns the position of a value on the axis, from 0 to 1; nil means
	// a linear axis.
	Scale func(uint64) float64
}

// at returns the position of a value on the axis, from 0 to 1.
func (a *Axis) at(v uint64) float64 {
	if a.Scale != nil {
		return min(max(a.Scale(v), 0), 1)
	}
	return float64(min(v, a.Max)) / float64(max(1, a.Max))
}

// Panel is a rectangle of a picture, in pixels from its upper left corner, with
// a horizontal axis below it and a vertical one on the left.
type Panel struct {
	X, Y, W, H float64
	Along, Up  Axis
	Title      string
}

// Margins of a panel for the labels of its axes, in pixels.
const (
	Left   = 86
	Bottom = 22
	Top    = 24
)

// Frame draws the axes with their lines and labels, and the title. Call it
// before drawing curves.
func (c *Panel) Frame(p *svg.Picture) {
	p.Text("head text", c.X, c.Y-9, c.Title)
	for _, v := range c.Up.Ticks {
		y := crisp(c.y(v))
		p.Line("thin crisp stroke-line", c.X, y, c.X+c.W, y)
		p.Text("small muted end", c.X-8, c.y(v)+4, c.Up.Text(v))
	}
	last := -1e9
	for _, v := range c.Along.Ticks {
		x := c.x(v)
		p.Line("thin crisp stroke-line", crisp(x), c.Y+c.H, crisp(x), c.Y+c.H+4)
		text := c.Along.Text(v)
		if room := 6.5 * float64(len(text)); x-last > room && x+room/2 <= c.X+c.W+Left/2 {
			p.Text("small muted middle", x, c.Y+c.H+17, text)
			last = x
		}
	}
	p.Path("thin crisp stroke-line", svg.Points(crisp(c.X), c.Y, crisp(c.X), crisp(c.Y+c.H), c.X+c.W, crisp(c.Y+c.H)))
}

// crisp returns the middle of a pixel.
func crisp(v float64) float64 { return float64(int(v)) + 0.5 }

func (c *Panel) x(v uint64) float64 { return c.X + c.W*float64(v)/float64(max(1, c.Along.Max)) }

func (c *Panel) y(v uint64) float64 { return c.Y + c.H - c.H*c.Up.at(v) }

// Steps draws values as a step line: value i from edge i to edge i+1. There
// must be one more edge than values.
func (c *Panel) Steps(p *svg.Picture, class string, edges, values []uint64) {
	if len(values) == 0 {
		return
	}
	p.Path("curve "+class, svg.Points(c.steps(edges, values)...))
}

func (c *Panel) steps(edges, values []uint64) []float64 {
	xy := make([]float64, 0, 4*len(values))
	for i, v := range values {
		xy = append(xy, c.x(edges[i]), c.y(v), c.x(edges[i+1]), c.y(v))
	}
	return xy
}

// Band fills the area between two step lines.
func (c *Panel) Band(p *svg.Picture, class string, edges, low, high []uint64) {
	if len(high) == 0 {
		return
	}
	xy := c.steps(edges, high)
	back := c.steps(edges, low)
	for i := len(back) - 2; i >= 0; i -= 2 {
		xy = append(xy, back[i], back[i+1])
	}
	p.Path(class, svg.Points(xy...)+"z")
}

// Area fills the area below a step line.
func (c *Panel) Area(p *svg.Picture, class string, edges, values []uint64) {
	c.Band(p, class, edges, make([]uint64, len(values)), values)
}

// Mark draws a dot with a text above it, shifted sideways to stay in the panel.
func (c *Panel) Mark(p *svg.Picture, class string, along, up uint64, text string) {
	x, y := c.x(along), c.y(up)
	p.Path(class, "M"+join(x-3, y)+"a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z")
	room := 3.2 * float64(len(text))
	at := min(max(x, c.X+room), c.X+c.W-room)
	p.Text("small text middle", at, y-7, text)
}

func join(x, y float64) string {
	return strings.Join([]string{strconv.FormatFloat(x, 'f', 1, 64), strconv.FormatFloat(y, 'f', 1, 64)}, " ")
}

// Legend writes pairs of a class and a text, each text after a box of its
// class, to the right of x.
func Legend(p *svg.Picture, x, y float64, items ...[2]string) {
	for _, item := range items {
		p.Rect(item[0], x, y-9, 12, 10)
		p.Text("small text", x+18, y, item[1])
		x += 18 + 6.2*float64(len(item[1])) + 16
	}
}
