package heapview

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/heapmap"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/svg"
)

// Options configure a picture or a page.
type Options struct {
	Name  string // program name for the title; empty if unknown
	Event uint64 // the moment to draw
	// Regions are the regions to draw, in the order of addresses.
	Regions []heapmap.Region
	Left    int // regions that are not in a page
	// Most is the largest number of panels of a picture, and Small the share of the memory in use below
	// which a region gets none; 0 stands for no limit.
	Most  int
	Small float64
	Width int // width of the picture in pixels; 0 means 1200
	// View is the range that a page shows first; the zero Region means all.
	View heapmap.Region
}

// Sizes of the picture in pixels.
const (
	margin  = 20
	gutter  = 118 // for addresses, left of a panel
	top     = 92  // for title and legend
	heading = 42  // for the title of a panel
	tallest = 640 // height of a panel
)

// WriteSVG draws a map after one event.
func WriteSVG(w io.Writer, m *heapmap.Map, o Options) error {
	if o.Width == 0 {
		o.Width = 1200
	}
	p := svg.New(colours())
	usage := m.Usage(o.Regions, o.Event)
	var total heapmap.Usage
	for _, u := range usage {
		total.Blocks += u.Blocks
		total.Bytes += u.Bytes
		total.Free += u.Free
	}
	shown, rest := rank(usage, o.Most, o.Small)
	title := "Memory map"
	if o.Name != "" {
		title += " of " + o.Name
	}
	moment := fmt.Sprintf("after event %s of %s", figure.Count(o.Event), figure.Count(m.Events()))
	if o.Event == m.Peak().Event {
		moment += " (peak)"
	}
	sums := fmt.Sprintf("%s live in %s, %s free in %s", figure.Bytes(total.Bytes), plural(total.Blocks, "block"),
		figure.Bytes(total.Free), plural(uint64(len(o.Regions)), "region"))
	p.Text("title text", margin, 30, title)
	p.Text("text", margin, 50, moment+": "+sums)
	legend(p, margin, 66)

	y := float64(top)
	for _, i := range shown {
		y = panel(p, m, o.Regions[i], usage[i], o, y)
	}
	if n := len(o.Regions) - len(shown); n > 0 {
		text := fmt.Sprintf("%s not drawn: %s live in %s", plural(uint64(n), "smaller region"), figure.Bytes(rest.Bytes), plural(rest.Blocks, "block"))
		if rest.Free > 0 {
			text += fmt.Sprintf(", %s free", figure.Bytes(rest.Free))
		}
		p.Text("text", margin, y+14, text)
		y += heading
	}
	return p.Write(w, float64(o.Width), y, title+" "+moment, sums)
}

// rank returns the regions to draw, those with most live bytes first, and the sum of the others.
func rank(usage []heapmap.Usage, most int, small float64) (shown []int, rest heapmap.Usage) {
	whole := uint64(0)
	order := make([]int, len(usage))
	for i, u := range usage {
		whole += u.Bytes + u.Free
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(usage[b].Bytes, usage[a].Bytes), cmp.Compare(usage[b].Free, usage[a].Free))
	})
	for n, i := range order {
		u := usage[i]
		minor := n > 0 && float64(u.Bytes+u.Free) < small*float64(whole)
		if !minor && (most == 0 || len(shown) < most) {
			shown = append(shown, i)
			continue
		}
		rest.Blocks += u.Blocks
		rest.Bytes += u.Bytes
		rest.Free += u.Free
	}
	return shown, rest
}

// plural formats a number with its noun.
func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return figure.Count(n) + " " + what + "s"
}

func legend(p *svg.Picture, x, y float64) {
	for _, item := range []struct {
		text  string
		cells []heapmap.Cell
	}{
		{"allocated part of the cell", []heapmap.Cell{heapmap.Used, heapmap.Used + 3, heapmap.Full}},
		{"freed", []heapmap.Cell{heapmap.Freed}},
		{"from the system, never allocated", []heapmap.Cell{heapmap.Heap}},
		{"the tracer's own", []heapmap.Cell{heapmap.Internal}},
		{"unknown", []heapmap.Cell{heapmap.Unknown}},
	} {
		for i, c := range item.cells {
			p.Rect("crisp "+class(c), x+float64(12*i), y, 12, 12)
		}
		n := float64(12 * len(item.cells))
		p.Path("thin crisp stroke-line", fmt.Sprintf("M%g %gh%gv12h%gz", x, y, n, -n))
		p.Text("text small", x+n+6, y+10, item.text)
		x += n + 6 + 6*float64(len(item.text)) + 16
	}
}

// layout is the division of a region into the cells of a panel.
type layout struct {
	grid          heapmap.Grid
	columns, rows int
	w, h          int // of a cell in pixels
}

// arrange returns the finest layout with which a region fits into a panel: 256,
// 512 … cells in a row, as many as fit into width, and rows of a suitable
// height.
func arrange(r heapmap.Region, width int) layout {
	l := layout{columns: 256}
	for 4*l.columns <= width {
		l.columns *= 2
	}
	l.w = max(1, width/l.columns)
	l.grid = heapmap.Fit(r, l.columns*tallest/2)
	l.rows = (l.grid.Cells + l.columns - 1) / l.columns
	l.h = min(10, max(2, 400/l.rows))
	return l
}

// panel draws a region below y and returns the y where it ends.
func panel(p *svg.Picture, m *heapmap.Map, r heapmap.Region, u heapmap.Usage, o Options, y float64) float64 {
	l := arrange(r, o.Width-gutter-2*margin)
	text := "no blocks"
	if u.Blocks > 0 {
		text = fmt.Sprintf("%s live in %s", figure.Bytes(u.Bytes), plural(u.Blocks, "block"))
	}
	if u.Free > 0 {
		text += fmt.Sprintf(", %s free, largest piece %s, fragmentation %s",
			figure.Bytes(u.Free), figure.Bytes(u.LargestFree), figure.Percent(u.Fragmentation()))
	}
	scale := fmt.Sprintf("%s per cell, %s per row", figure.Bytes(l.grid.CellBytes), figure.Bytes(l.grid.CellBytes*uint64(l.columns)))
	p.Begin("")
	p.Text("head text", margin, y+14, fmt.Sprintf("%#x to %#x, %s", r.Start, r.Last, figure.Bytes(r.Size())))
	p.Text("small muted", margin, y+31, text+"; "+scale)
	y += heading
	addresses(p, r, l, y)
	cells(p, l, m.Paint(l.grid, o.Event), margin+gutter, int(y))
	frame(p, l, margin+gutter, int(y))
	p.End()
	return y + float64(l.rows*l.h) + 26
}

// addresses writes the addresses of some rows to the left of them.
func addresses(p *svg.Picture, r heapmap.Region, l layout, y float64) {
	every := 1
	for every*l.h < 15 {
		every *= 2
	}
	bytes := l.grid.CellBytes * uint64(l.columns)
	for row := 0; row < l.rows; row += every {
		at := y + float64(row*l.h)
		p.Line("thin crisp stroke-line", margin+gutter-6, at+0.5, margin+gutter, at+0.5)
		p.Text("mono muted end", margin+gutter-9, at+8, "0x"+strconv.FormatUint(r.Start+uint64(row)*bytes, 16))
	}
}

// cells draws the cells of each state as one path.
func cells(p *svg.Picture, l layout, all []heapmap.Cell, x, y int) {
	var paths [heapmap.Full + 1]strings.Builder
	for row := range l.rows {
		line := all[row*l.columns : min(len(all), (row+1)*l.columns)]
		for from := 0; from < len(line); {
			to := from + 1
			for to < len(line) && line[to] == line[from] {
				to++
			}
			n := (to - from) * l.w
			fmt.Fprintf(&paths[line[from]], "M%d %dh%dv%dh-%dz", x+from*l.w, y+row*l.h, n, l.h, n)
			from = to
		}
	}
	for c := range paths {
		if paths[c].Len() > 0 {
			p.Path("crisp "+class(heapmap.Cell(c)), paths[c].String())
		}
	}
}

// frame draws a line around the cells, whose last row may be short.
func frame(p *svg.Picture, l layout, x, y int) {
	width, rest := l.columns*l.w, l.grid.Cells%l.columns*l.w
	full := l.grid.Cells / l.columns * l.h
	d := fmt.Sprintf("M%g %g", float64(x)-0.5, float64(y)-0.5)
	switch {
	case full == 0:
		d += fmt.Sprintf("h%dv%dh%dz", rest+1, l.h+1, -rest-1)
	case rest == 0:
		d += fmt.Sprintf("h%dv%dh%dz", width+1, full+1, -width-1)
	default:
		d += fmt.Sprintf("h%dv%dh%dv%dh%dz", width+1, full+1, rest-width, l.h, -rest-1)
	}
	p.Path("thin crisp stroke-line", d)
}
