package heapview

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/heapmap"
	"rtrace-bpf/internal/report/figure"
)

// drawing is the content of an SVG file.
type drawing struct {
	texts []string
	paths map[string]string // by class
}

func read(t *testing.T, data []byte) drawing {
	t.Helper()
	d := drawing{paths: map[string]string{}}
	x := xml.NewDecoder(bytes.NewReader(data))
	inText := false
	for {
		token, err := x.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			inText = e.Name.Local == "text"
			if e.Name.Local == "path" {
				d.paths[attribute(e, "class")] += attribute(e, "d")
			}
		case xml.CharData:
			if inText {
				d.texts = append(d.texts, string(e))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

var oneRun = regexp.MustCompile(`M(\d+) (\d+)h(\d+)v(\d+)h-\d+z`)

// pixels returns the class of each pixel of the runs.
func (d drawing) pixels(t *testing.T) map[[2]int]string {
	t.Helper()
	out := map[[2]int]string{}
	for class, commands := range d.paths {
		if !strings.HasPrefix(class, "crisp ") {
			continue
		}
		for _, m := range oneRun.FindAllStringSubmatch(commands, -1) {
			var n [4]int
			for i := range n {
				n[i], _ = strconv.Atoi(m[i+1])
			}
			for x := n[0]; x < n[0]+n[2]; x++ {
				for y := n[1]; y < n[1]+n[3]; y++ {
					if out[[2]int{x, y}] != "" {
						t.Fatalf("pixel %d, %d is drawn twice", x, y)
					}
					out[[2]int{x, y}] = strings.TrimPrefix(class, "crisp ")
				}
			}
		}
	}
	return out
}

// The picture is well-formed and has the figures, and each pixel has the colour
// of its cell.
func TestPicture(t *testing.T) {
	for seed, event := range []uint64{1, 77, 900, 2000} {
		w := build(uint64(seed), 2000, false)
		o := w.options(event)
		var out bytes.Buffer
		if err := WriteSVG(&out, w.m, o); err != nil {
			t.Fatal(err)
		}
		d := read(t, out.Bytes())
		level := w.levels[event]
		sums := fmt.Sprintf("%s live in %s", figure.Bytes(level.Bytes), plural(level.Blocks, "block"))
		all := strings.Join(d.texts, "\n")
		for _, want := range []string{`Memory map of prog "<1>"`, fmt.Sprintf("after event %s of 2,000", figure.Count(event)), sums, "0x555555550000", "0x7fff00000000 to "} {
			if !strings.Contains(all, want) {
				t.Errorf("event %d: no %q in\n%s", event, want, all)
			}
		}
		pixels := d.pixels(t)
		y := top
		for _, r := range byLiveBytes(w.m, o.Regions, event) {
			y += heading
			l := arrange(r, 1200-gutter-2*margin)
			for i, c := range w.m.Paint(l.grid, event) {
				for _, at := range [][2]int{{0, 0}, {l.w - 1, l.h - 1}} {
					at[0] += margin + gutter + i%l.columns*l.w
					at[1] += y + i/l.columns*l.h
					if pixels[at] != class(c) {
						t.Fatalf("event %d, region %#x, cell %d: pixel %v is %q, want %q", event, r.Start, i, at, pixels[at], class(c))
					}
				}
			}
			y += l.rows*l.h + 26
		}
	}
}

// byLiveBytes returns regions, those with most live bytes first.
func byLiveBytes(m *heapmap.Map, regions []heapmap.Region, event uint64) []heapmap.Region {
	bytes := map[heapmap.Region]uint64{}
	for b := range m.Blocks() {
		for _, r := range regions {
			if b.Born <= event && (b.Died == 0 || b.Died > event) && r.Start <= b.Address && b.Address <= r.Last {
				bytes[r] += b.Size
			}
		}
	}
	regions = slices.Clone(regions)
	slices.SortStableFunc(regions, func(a, b heapmap.Region) int { return cmp.Compare(bytes[b], bytes[a]) })
	return regions
}

// Regions are in the order of live bytes; those beyond the limits are added up.
func TestRank(t *testing.T) {
	usage := []heapmap.Usage{{Blocks: 1, Bytes: 5}, {Blocks: 9, Bytes: 500, Free: 100}, {Free: 400}, {Blocks: 2, Bytes: 6}, {Blocks: 4, Bytes: 900}}
	for _, tt := range []struct {
		most  int
		small float64
		shown []int
		rest  heapmap.Usage
	}{
		{0, 0, []int{4, 1, 3, 0, 2}, heapmap.Usage{}},
		{0, 0.01, []int{4, 1, 2}, heapmap.Usage{Blocks: 3, Bytes: 11}},
		{2, 0, []int{4, 1}, heapmap.Usage{Blocks: 3, Bytes: 11, Free: 400}},
		{1, 0.99, []int{4}, heapmap.Usage{Blocks: 12, Bytes: 511, Free: 500}},
	} {
		shown, rest := rank(usage, tt.most, tt.small)
		if !slices.Equal(shown, tt.shown) || rest != tt.rest {
			t.Errorf("%d, %v: %v and %+v, want %v and %+v", tt.most, tt.small, shown, rest, tt.shown, tt.rest)
		}
	}
}

// Panels stay within their bounds for regions of any size and any width.
func TestArrange(t *testing.T) {
	for _, width := range []int{300, 341, 1042, 5000} {
		for size := uint64(4096); size <= 1<<52; size = size*3 + 4096 {
			l := arrange(heapmap.Region{Start: 4096, Last: 4096 + size - 1}, width)
			if l.columns*l.w > width || l.rows*l.h > tallest || uint64(l.grid.Cells)*l.grid.CellBytes < size || l.grid.Cells > l.rows*l.columns {
				t.Errorf("width %d, size %d: %+v", width, size, l)
			}
		}
	}
}
