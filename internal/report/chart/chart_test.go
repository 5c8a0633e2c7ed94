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

// Whatever the numbers are, the drawing stays in its panel and is well-formed.
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
