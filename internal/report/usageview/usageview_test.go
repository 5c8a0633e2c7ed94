package usageview_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/internal/report/usageview"
	"rtrace-bpf/trace"
)

const all = consumption.Totals | consumption.Activity | consumption.Lifetime | consumption.Count | consumption.Size

// count returns the usage of some calls, with all reports.
func count(t *testing.T, calls bool, records ...*trace.Record) *consumption.Usage {
	t.Helper()
	scan := consumption.NewScan(consumption.Filter{}, false, calls)
	for _, r := range records {
		scan.Add(r)
	}
	u, err := consumption.New(scan, consumption.Options{Reports: all})
	if err := errors.Join(err, scan.Check(all)); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		u.Add(r)
	}
	u.Finish()
	return u
}

func alloc(ms int64, id, size uint64, context, resource uint32) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Time: ms * 1e6, Call: trace.Call{Op: trace.OpAlloc, ID: id, Size: size, Context: context, Resource: resource}}
}

func free(ms int64, id uint64, resource uint32) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Time: ms * 1e6, Call: trace.Call{Op: trace.OpFree, ID: id, Resource: resource}}
}

// draw draws a report and returns its texts.
func draw(t *testing.T, u *consumption.Usage, r consumption.Report, o usageview.Options) (texts, data string) {
	t.Helper()
	var out bytes.Buffer
	if err := usageview.WriteSVG(&out, u, r, o); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(out.Bytes()))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, out.String()
		}
		if err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		if c, ok := token.(xml.CharData); ok {
			texts += string(c) + "\n"
		}
	}
}

var (
	point = regexp.MustCompile(`[ML](-?[\d.]+|NaN|[+-]?Inf) (-?[\d.]+|NaN|[+-]?Inf)`)
	size  = regexp.MustCompile(`width="(\d+)" height="([\d.]+)" viewBox`)
)

// inside checks that all parts of a picture lie within it.
func inside(t *testing.T, data string) {
	t.Helper()
	m := size.FindStringSubmatch(data)
	if m == nil {
		t.Fatal("no size")
	}
	w, _ := strconv.ParseFloat(m[1], 64)
	h, _ := strconv.ParseFloat(m[2], 64)
	for _, p := range point.FindAllStringSubmatch(data, -1) {
		x, errX := strconv.ParseFloat(p[1], 64)
		y, errY := strconv.ParseFloat(p[2], 64)
		if errX != nil || errY != nil || !(x >= 0 && x <= w+2 && y >= 0 && y <= h) {
			t.Errorf("a point at %s %s in a picture of %v by %v", p[1], p[2], w, h)
		}
	}
}

// words replaces each run of blanks by one blank.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// Each report has a description, named curves and its table.
func TestReports(t *testing.T) {
	records := []*trace.Record{
		{Kind: trace.KindContext, Context: trace.Context{ID: 1, Name: "start & <go>"}},
		alloc(1000, 16, 4096, 1, 0), alloc(1500, 32, 100, 0, 0), free(1600, 16, 0), alloc(3000, 48, 8, 1, 0),
	}
	u := count(t, false, records...)
	for _, tt := range []struct {
		report consumption.Report
		want   []string
	}{
		{consumption.Totals, []string{"Amount of non-freed allocations of <prog>", "4 calls from 00:00:01.000 to 00:00:03.000; only size 1-", "memory, start & <go> (dashed)", "peak 4.1 KiB at 00:00:01.500", "time since 00:00:01.000", "memory    peak       2  4196      2  4196  00:00:01.500"}},
		{consumption.Activity, []string{"rate in 100 ms", "Allocated in 100 ms", "memory, all", "peak 4 KiB at 00:00:01.050", "peak frees      1     0"}},
		{consumption.Lifetime, []string{"memory 0x10", "memory 0x30", "memory: average 1401 (dashed)", "memory: median 100 (dotted)", "1 k", "min         8"}},
		{consumption.Count, []string{"unfreed", "100", "4096", "both        100      3        4204"}},
		{consumption.Size, []string{"Total size", "4 KiB"}},
	} {
		texts, data := draw(t, u, tt.report, usageview.Options{Name: "<prog>", Filters: "size 1-", LogBase: 10})
		for _, want := range tt.want {
			if !strings.Contains(words(texts), words(want)) {
				t.Errorf("%v: no %q in\n%s", tt.report, want, texts)
			}
		}
		inside(t, data)
	}
}

// The highest point of the curve is the peak, on whichever axis it is drawn.
func TestPlaces(t *testing.T) {
	u := count(t, false, alloc(1000, 16, 1000, 0, 0), alloc(2000, 32, 3000, 0, 0), free(3000, 32, 0))
	_, data := draw(t, u, consumption.Totals, usageview.Options{Width: 1006})
	// 1006 pixels stand for 880 on the axis: the second call is in the middle.
	curve := regexp.MustCompile(`class="curve stroke-c0" d="([^"]*)"`).FindStringSubmatch(data)
	if curve == nil {
		t.Fatal("no curve")
	}
	top, at := math.Inf(1), 0.0
	for _, m := range point.FindAllStringSubmatch(curve[1], -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		y, _ := strconv.ParseFloat(m[2], 64)
		if y < top {
			top, at = y, x
		}
	}
	most := 4016 + 4016/8 // with the overhead
	if want := 92 + 300*(1-4000/float64(most)); math.Abs(top-want) > 0.1 || math.Abs(at-(106+440)) > 1 {
		t.Errorf("the peak is at %v, %v; want 546, %v", at, top, want)
	}
}

// For any trace, the pictures are complete and of bounded size.
func TestExtremes(t *testing.T) {
	many := []*trace.Record{{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}}}
	for i := range 20000 {
		many = append(many, alloc(int64(1+i/10), uint64(i), uint64(i*i), uint32(i%40), 1))
		if i%3 == 0 {
			many = append(many, free(int64(1+i/10), uint64(i/2), 1))
		}
	}
	var kinds []*trace.Record
	for i := range 64 {
		kinds = append(kinds, &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: uint32(i), Type: fmt.Sprint("kind", i)}}, alloc(5, 16, uint64(i), 0, uint32(i)))
	}
	for name, records := range map[string][]*trace.Record{
		"one call":    {alloc(7, 16, 1, 0, 0)},
		"size 0":      {alloc(7, 16, 0, 0, 0), alloc(8, 32, 0, 0, 0)},
		"huge":        {alloc(7, 16, math.MaxUint64, 0, 0), alloc(4_000_000_000_000, 32, math.MaxUint64, 0, 0)},
		"many":        many,
		"types":       kinds,
		"no contexts": {alloc(1, 16, 10, 8, 0), free(2, 16, 0)},
	} {
		for _, calls := range []bool{false, true} {
			u := count(t, calls, records...)
			for _, r := range consumption.Reports {
				for _, base := range []float64{1, 2, 10} {
					_, data := draw(t, u, r, usageview.Options{Width: 600, Height: 50, LogBase: base})
					inside(t, data)
					if len(data) > 1<<20 {
						t.Errorf("%s: %v: %d bytes", name, r, len(data))
					}
				}
			}
		}
	}
}

// If there are many sizes, they share bars that together contain all blocks.
func TestBars(t *testing.T) {
	var records []*trace.Record
	for i := range 1000 {
		records = append(records, alloc(1, uint64(16*i), uint64(i), 0, 0))
	}
	texts, data := draw(t, count(t, false, records...), consumption.Count, usageview.Options{})
	if n := strings.Count(data, `class="unfreed"`); n < 20 || n > 80 {
		t.Errorf("%d bars", n)
	}
	for _, want := range []string{"\n0\n", "\n1\n", "–1023\n"} {
		if !strings.Contains(texts, want) {
			t.Errorf("no %q in\n%s", want, texts)
		}
	}
}

// Names in tables cannot control a terminal.
func TestTable(t *testing.T) {
	u := count(t, false, &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "a\x1b[2J"}}, alloc(1, 1, 1, 0, 1))
	for _, r := range consumption.Reports {
		var out bytes.Buffer
		if _, err := usageview.Table(u, r).WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "[2J") {
			t.Errorf("%q", out.String())
		}
	}
}
