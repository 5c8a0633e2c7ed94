package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/report/chart"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/svg"
)

func TestPanel(t *testing.T) {
	p := svg.New(nil)
	c := chart.Panel{
		X: 100, Y: 50, W: 400, H: 200, Title: "a & b",
		Along: chart.Axis{Max: 40, Ticks: figure.Ticks(40, 4), Text: figure.Count},
		Up:    chart.Axis{Max: 1000, Ticks: figure.Ticks(1000, 4), Text: figure.Bytes},
	}
	c.Frame(p)
	edges, values := []uint64{0, 10, 20, 40}, []uint64{0, 500, 1000}
	c.Steps(p, "stroke-text", edges, values)
	c.Band(p, "muted", edges, []uint64{0, 250, 1000}, values)
	c.Area(p, "line", edges, values)
	c.Mark(p, "text", 40, 1000, "the peak")
	chart.Legend(p, 0, 0, [2]string{"text", "x<y"})
	var out bytes.Buffer
	if err := p.Write(&out, 600, 300, "t", "d"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`d="M100 250L200 250L200 150L300 150L300 50L500 50"`,
		`d="M100 250L200 250L200 150L300 150L300 50L500 50L500 50L300 50L300 200L200 200L200 250L100 250z"`,
		">a &amp; b</text>", ">x&lt;y</text>", ">500 B</text>", ">1000 B</text>", ">40</text>", ">the peak</text>",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

// Lines, bars, and an axis that is not linear.
func TestLines(t *testing.T) {
	p := svg.New(nil)
	c := chart.Panel{
		X: 100, Y: 50, W: 400, H: 200, Along: chart.Axis{Max: 40},
		Up: chart.Axis{Max: 1000, Scale: func(v uint64) float64 { return math.Log10(max(1, float64(v))) / 3 }},
	}
	c.Line(p, "a", []uint64{0, 20}, []uint64{1, 1000})
	c.Spans(p, "b", []chart.Span{{From: 0, To: 10, Up: 10}, {From: 20, To: 20, Up: 5000}})
	c.Level(p, "c", 100)
	c.Upright(p, "d", 40)
	c.Bars(p, []string{"e", "f"}, []chart.Bar{{Text: "x", Parts: []uint64{1, 9}}, {Text: "y", Parts: []uint64{0, 10}}})
	var out bytes.Buffer
	if err := p.Write(&out, 600, 300, "t", "d"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`class="curve a" d="M100 250L300 50"`, `class="curve b" d="M100 183.33L200 183.33M300 50L302 50"`,
		`class="thin c" x1="100" y1="116.67" x2="500" y2="116.67"`, `class="thin d" x1="500.5" y1="50" x2="500.5" y2="250"`,
		`<rect class="e" x="113.5" y="250" width="63" height="1"/>`, `<rect class="f" x="113.5" y="183.33" width="63" height="66.67"/>`,
		`<rect class="f" x="203.5" y="183.33" width="63" height="66.67"/>`, `transform="rotate(-90 149 257)" x="149" y="257">x</text>`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
	if got := c.Row(10); got != 133 {
		t.Errorf("row %d, want 133", got)
	}
}

// For any numbers, the drawing stays in its panel and is well-formed.
func TestExtremes(t *testing.T) {
	for _, most := range []uint64{0, 1, math.MaxUint64} {
		p := svg.New(nil)
		c := chart.Panel{X: 100, Y: 50, W: 400, H: 200, Along: chart.Axis{Max: most, Ticks: figure.Ticks(most, 5), Text: figure.Count}, Up: chart.Axis{Max: most, Ticks: figure.ByteTicks(most, 5), Text: figure.Bytes}}
		c.Frame(p)
		c.Steps(p, "x", []uint64{0, most / 2, most}, []uint64{most, 0})
		c.Steps(p, "x", []uint64{0}, nil)
		c.Area(p, "x", []uint64{0}, nil)
		c.Mark(p, "x", most, most, "mark")
		var out bytes.Buffer
		if err := p.Write(&out, 600, 300, "t", "d"); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(bytes.NewReader(out.Bytes()))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "path" {
				for _, a := range e.Attr {
					if a.Name.Local == "d" {
						within(t, a.Value)
					}
				}
			}
		}
	}
}

var point = regexp.MustCompile(`[ML]([\d.-]+) ([\d.-]+)`)

func within(t *testing.T, path string) {
	t.Helper()
	for _, m := range point.FindAllStringSubmatch(path, -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		y, _ := strconv.ParseFloat(m[2], 64)
		if x < 96 || x > 501 || y < 46 || y > 251 {
			t.Errorf("a point at %v, %v in %s", x, y, path)
		}
	}
}
