package timeview_test

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

	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/report/chart"
	"rtrace-bpf/internal/report/timeview"
	"rtrace-bpf/trace"
)

// follow returns a timeline of n events, 1 ms apart: allocations of 1000 bytes,
// every second one followed by a free, and a peak that lasts for one event.
func follow(n int, o timeline.Options) *timeline.Timeline {
	t := timeline.New(o)
	t.Add(&trace.Record{Kind: trace.KindHeapGrow, HeapGrow: trace.HeapGrow{Address: 4096, Size: 1 << 20}})
	for i := range n {
		r := trace.Record{Kind: trace.KindCall, Time: int64(i+1) * 1e6}
		switch {
		case i == n/2:
			r.Call = trace.Call{Op: trace.OpAlloc, ID: 1, Size: 4 << 20}
		case i == n/2+1:
			r.Call = trace.Call{Op: trace.OpFree, ID: 1}
		case i%3 == 2:
			r.Call = trace.Call{Op: trace.OpFree, ID: uint64(16 * (i - 1))}
		default:
			r.Call = trace.Call{Op: trace.OpAlloc, ID: uint64(16 * i), Size: 1000}
		}
		t.Add(&r)
	}
	return t
}

type path struct{ class, commands string }

func read(t *testing.T, data []byte) (texts string, paths []path) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	var all []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(all, "\n"), paths
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.CharData:
			all = append(all, string(e))
		case xml.StartElement:
			if e.Name.Local != "path" {
				continue
			}
			var p path
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "class":
					p.class = a.Value
				case "d":
					p.commands = a.Value
				}
			}
			paths = append(paths, p)
		}
	}
}

var point = regexp.MustCompile(`([ML])([\d.-]+) ([\d.-]+)`)

// The picture is well-formed and has the same figures as mptrace. Its highest
// point is the peak, which lasts for one of many events, and the curve ends at
// the end.
func TestWriteSVG(t *testing.T) {
	for _, tt := range []struct {
		axis timeline.Axis
		want []string
	}{
		{timeline.ByEvent, []string{"events", "freed per 20 events", "10,000", "peak 5.59 MiB after event 5,001", "2 MiB"}},
		{timeline.ByTime, []string{"time since the first call", "10 s", "freed per 20 ms"}},
	} {
		tl := follow(10001, timeline.Options{Axis: tt.axis, Points: 700})
		var out bytes.Buffer
		if err := timeview.WriteSVG(&out, tl, timeview.Options{Name: "<prog>", Axis: tt.axis, Width: 1000}); err != nil {
			t.Fatal(err)
		}
		texts, paths := read(t, out.Bytes())
		for _, want := range append(tt.want, "Timeline of <prog>", "10,001 events", "after event 5,001", "Live blocks", "from the system") {
			if !strings.Contains(texts, want) {
				t.Errorf("axis %d: no %q in\n%s", tt.axis, want, texts)
			}
		}
		top, right := math.Inf(1), 0.0
		for _, p := range paths {
			if p.class != "range" {
				continue
			}
			for _, m := range point.FindAllStringSubmatch(p.commands, -1) {
				x, _ := strconv.ParseFloat(m[2], 64)
				y, _ := strconv.ParseFloat(m[3], 64)
				top, right = min(top, y), max(right, x)
			}
			break
		}
		total := tl.Totals()
		most := float64(max(total.PeakBytes, total.Reserved.Bytes))
		if want := 92 + 280*(1-float64(total.PeakBytes)/(most+math.Floor(most/8))); math.Abs(top-want) > 0.02 {
			t.Errorf("axis %d: the highest point is at %v, want %v", tt.axis, top, want)
		}
		if want := 1000 - 20.0; math.Abs(right-want) > 0.02 {
			t.Errorf("axis %d: the curve ends at %v, want %v, %v wide", tt.axis, right, want, chart.Left)
		}
	}
}

// A trace of one call, and one without live blocks at the end.
func TestSmall(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		var out bytes.Buffer
		if err := timeview.WriteSVG(&out, follow(n, timeline.Options{}), timeview.Options{}); err != nil {
			t.Fatal(err)
		}
		read(t, out.Bytes())
	}
}
