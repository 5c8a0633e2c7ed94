package consumption_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/trace"
)

func TestFilters(t *testing.T) {
	at := func(ms int64, relative bool) consumption.Moment {
		return consumption.Moment{Set: true, Relative: relative, At: ms * 1e6}
	}
	const text = "resource 1 fd\nresource 2 memory\n10 a 16 0 0 2\n20 a 32 100 1 2\n30 a 48 200 2 2\n40 a 3 1 3 1\n50 f 32 0 0 2\n60 f 48 0 2 2\n"
	for _, tt := range []struct {
		name   string
		filter consumption.Filter
		want   string
	}{
		{"none", consumption.Filter{}, "10:0 20:100 30:300 50:200 60:0"},
		{"resource", consumption.Filter{Resource: "memory"}, "10:0 20:100 30:300 50:200 60:0"},
		{"size", consumption.Filter{Sizes: []consumption.Range{{Min: 100, End: 101}}}, "20:100 50:0"},
		{"two sizes", consumption.Filter{Sizes: []consumption.Range{{Min: 100}, {End: 201}}}, "20:100 30:300 50:200 60:0"},
		{"index", consumption.Filter{Indexes: []consumption.Range{{Min: 2, End: 6}}}, "20:100 30:300 50:200"},
		{"context", consumption.Filter{Contexts: []uint32{2}}, "30:200 60:0"},
		{"no context", consumption.Filter{Contexts: []uint32{0}}, "10:0"},
		{"time", consumption.Filter{Times: []consumption.Times{{From: at(20, false), To: at(50, false)}}}, "20:100 30:300 50:200"},
		{"until", consumption.Filter{Times: []consumption.Times{{To: at(20, true)}}}, "10:0 20:100 30:300"},
		{"relative", consumption.Filter{Times: []consumption.Times{{From: at(20, true), To: at(20, true)}}}, "30:200"},
		{"relative after others", consumption.Filter{Indexes: []consumption.Range{{Min: 2}}, Times: []consumption.Times{{From: at(10, true)}}}, "30:200 60:0"},
	} {
		_, l := count(t, text, consumption.Options{Reports: consumption.Totals, Filter: tt.filter})
		if got := l.find(t, "totals "+memory); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	_, l := count(t, text, consumption.Options{Reports: consumption.Totals, Legacy: true, Filter: consumption.Filter{Sizes: []consumption.Range{{Min: 100, End: 101}}}})
	if got := l.find(t, "totals "+memory); got != "10:0 20:100 50:0" {
		t.Errorf("legacy: size 0 passes: %q", got)
	}
}

func TestCheck(t *testing.T) {
	many := ""
	for i := range 65 {
		many += fmt.Sprintf("resource %d r%d\n", i+1, i)
	}
	for _, tt := range []struct {
		name, text string
		reports    consumption.Report
		filter     consumption.Filter
		legacy     bool
		want       string
	}{
		{"no calls", "resource 1 memory\n", consumption.Count, consumption.Filter{}, false, "no calls"},
		{"no times", "0 a 1 1\n", consumption.Totals, consumption.Filter{}, false, "no times"},
		{"a time is missing", "1 a 1 1\n0 a 2 1\n", consumption.Lifetime, consumption.Filter{}, true, "no times"},
		{"times to filter by", "0 a 1 1\n", consumption.Count, consumption.Filter{Times: []consumption.Times{{}}}, false, "no times"},
		{"unknown resource", "1 a 1 1\n", consumption.Count, consumption.Filter{Resource: "fd"}, false, `no resource of type "fd"; it has memory`},
		{"too many resources", many + "1 a 1 1 0 1\n", consumption.Count, consumption.Filter{}, false, "more than 64 resources"},
		{"times before the clock", "-9000000000000 a 1 1\n9000000000000 f 1\n", consumption.Count, consumption.Filter{}, false, "292 years"},
		{"no times needed", "0 a 1 1\n", consumption.Count | consumption.Size, consumption.Filter{}, true, ""},
	} {
		scan := consumption.NewScan(tt.filter, tt.legacy, false)
		for _, r := range parse(t, tt.text) {
			scan.Add(r)
		}
		err := scan.Check(tt.reports)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if strings.Contains(tt.want, "times") && !errors.Is(err, consumption.ErrTimes) {
			t.Errorf("%s: %v is not ErrTimes", tt.name, err)
		}
	}
	scan := consumption.NewScan(consumption.Filter{}, false, false)
	for _, r := range parse(t, "1 a 1 1\n86400001 f 1\n") {
		scan.Add(r)
	}
	if _, err := consumption.New(scan, consumption.Options{Reports: consumption.Activity, Slice: ms}); err == nil || !strings.Contains(err.Error(), "a slice of 0.001 s makes 172800001 values") {
		t.Errorf("%v", err)
	}
}

// By calls, times are not needed.
func TestByCalls(t *testing.T) {
	scan := consumption.NewScan(consumption.Filter{}, false, true)
	records := parse(t, "0 a 16 10\n0 a 32 5\n0 f 16\n")
	for _, r := range records {
		scan.Add(r)
	}
	if err := scan.Check(consumption.Totals | consumption.Activity); err != nil {
		t.Fatal(err)
	}
	u, err := consumption.New(scan, consumption.Options{Reports: consumption.Totals | consumption.Activity})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		u.Add(r)
	}
	u.Finish()
	k := u.Kinds()[0]
	columns := k.Sum.Columns()
	if len(columns) != 3 || columns[0].Last != 10 || columns[1].Last != 15 || columns[2].Last != 5 || k.Peak.At != 2 || k.Rates.Allocs.Count != 2 {
		t.Errorf("%+v, %+v", columns, k)
	}
}

// Curves preserve all extremes, and their columns begin at the first position
// in them.
func TestCurves(t *testing.T) {
	var text strings.Builder
	for i := range 10000 {
		size := 1
		if i == 7003 {
			size = 1 << 20
		}
		fmt.Fprintf(&text, "%d a 16 %d\n%d f 16\n", 1+i, size, 1+i)
	}
	u, _ := count(t, text.String(), consumption.Options{Reports: consumption.Totals, Columns: 100})
	columns, edges := u.Kinds()[0].Sum.Columns(), consumption.Edges(100, u.Span().Width())
	if len(columns) != 100 || len(edges) != 101 || edges[0] != 0 || edges[100] != uint64(9999*ms) {
		t.Fatalf("%d columns, edges %v", len(columns), edges)
	}
	for i, c := range columns {
		peak := edges[i] <= uint64(7003*ms) && uint64(7003*ms) < edges[i+1]
		if peak != (c.Max == 1<<20) || c.Min != 0 || c.Last != 0 {
			t.Errorf("column %d: %+v", i, c)
		}
	}
	if got := consumption.Edges(3, 2); !cmp.Equal(got, []uint64{0, 1, 2, 2}) {
		t.Errorf("%v", got)
	}
}

// Once blocks have their places, a call allocates no memory.
func TestAllocations(t *testing.T) {
	text := "context 1 a\n"
	scan := consumption.NewScan(consumption.Filter{}, false, false)
	for _, r := range parse(t, text+"1 a 16 10\n100 f 16\n") {
		scan.Add(r)
	}
	u, err := consumption.New(scan, consumption.Options{Reports: consumption.Totals | consumption.Activity | consumption.Lifetime | consumption.Count})
	if err != nil {
		t.Fatal(err)
	}
	calls := parse(t, "1 a 16 10 1\n1 f 16\n")
	for range 40 {
		u.Add(calls[0])
		u.Add(calls[1])
	}
	if n := testing.AllocsPerRun(100, func() { u.Add(calls[0]); u.Add(calls[1]) }); n != 0 {
		t.Errorf("%v allocations a pair", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	scan := consumption.NewScan(consumption.Filter{}, false, false)
	var calls [2048]trace.Record
	for i := range calls {
		c := &calls[i]
		c.Kind, c.Time = trace.KindCall, int64(i+1)*1000
		c.Call = trace.Call{Op: trace.OpAlloc, ID: uint64(i%1024) * 16, Size: uint64(i % 100)}
		if i >= 1024 {
			c.Call.Op = trace.OpFree
		}
		scan.Add(c)
	}
	u, err := consumption.New(scan, consumption.Options{Reports: consumption.Totals | consumption.Activity | consumption.Lifetime | consumption.Count})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		u.Add(&calls[i%len(calls)])
	}
}
