package consumption_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/trace"
)

const ms = int64(1e6)

// lines is a sink that collects the series by report and number.
type lines struct {
	names  []string
	points []*strings.Builder
}

func (l *lines) Begin(r consumption.Report, heading string) int {
	l.names = append(l.names, fmt.Sprint(r, " ", heading))
	l.points = append(l.points, new(strings.Builder))
	return len(l.names) - 1
}

func (l *lines) Point(n int, x int64, y uint64) { fmt.Fprintf(l.points[n], "%d:%d ", x/ms, y) }

func (l *lines) Break(n int) { l.points[n].WriteString("| ") }

func (l *lines) Row(n int, values ...uint64) { fmt.Fprint(l.points[n], values) }

func (l *lines) find(t *testing.T, name string) string {
	t.Helper()
	for i, n := range l.names {
		if n == name {
			return strings.TrimSpace(l.points[i].String())
		}
	}
	t.Errorf("no series %q among %q", name, l.names)
	return ""
}

// calls parses lines of "ms op id size context resource".
func parse(t *testing.T, text string) []*trace.Record {
	t.Helper()
	var out []*trace.Record
	seq := uint64(0)
	for line := range strings.Lines(text) {
		f := append(strings.Fields(line), "0", "0", "0", "0")
		r := &trace.Record{Kind: trace.KindCall}
		switch f[0] {
		case "day":
			r.Kind, r.Header.Clock = trace.KindHeader, trace.ClockDay
		case "context":
			r.Kind = trace.KindContext
			r.Context = trace.Context{ID: id(t, f[1]), Name: f[2]}
		case "resource", "refcount":
			r.Kind = trace.KindResource
			r.Resource = trace.Resource{ID: id(t, f[1]), Type: f[2], RefCount: f[0] == "refcount"}
		case "exec":
			r.Kind = trace.KindExec
		default:
			seq++
			c := &r.Call
			c.Seq, c.Op = seq, map[string]trace.Op{"a": trace.OpAlloc, "f": trace.OpFree}[f[1]]
			if _, err := fmt.Sscan(strings.Join([]string{f[0], f[2], f[3], f[4], f[5]}, " "), &r.Time, &c.ID, &c.Size, &c.Context, &c.Resource); err != nil {
				t.Fatal(line, err)
			}
			r.Time *= ms
		}
		out = append(out, r)
	}
	return out
}

func id(t *testing.T, text string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// count returns the reports of a trace.
func count(t *testing.T, text string, o consumption.Options) (*consumption.Usage, *lines) {
	t.Helper()
	records := parse(t, text)
	scan := consumption.NewScan(o.Filter, o.Legacy, false)
	for _, r := range records {
		scan.Add(r)
	}
	if err := scan.Check(o.Reports); err != nil {
		t.Fatal(err)
	}
	l := new(lines)
	o.Sink = l
	u, err := consumption.New(scan, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		u.Add(r)
	}
	u.Finish()
	return u, l
}

const memory = `Resource "memory"`

func TestTotals(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"allocations and frees", "1 a 16 10\n2 a 32 5\n3 f 16\n9 f 48\n", "1:10 2:15 3:5"},
		{"an allocation in place of another", "1 a 16 10\n2 a 16 5\n3 f 16\n", "1:10 2:0 2:5 3:0"},
		{"exec", "1 a 16 10\n2 f 7\nexec\n3 f 16\n4 a 16 1\n", "1:10 2:0 4:1"},
		{"no times before the second call", "0 a 16 10\n5 a 32 5\n0 f 16\n", "5:10 5:15 5:5"},
		{"midnight", "day\n86399999 a 16 10\n1 a 32 5\n", "86399999:10 86400001:15"},
	} {
		_, l := count(t, tt.text, consumption.Options{Reports: consumption.Totals})
		if got := l.find(t, "totals "+memory); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// In the original, an allocation that replaces another one adds to it, and at
// midnight time goes back.
func TestTotalsLegacy(t *testing.T) {
	_, l := count(t, "day\n86399999 a 16 10\n1 a 16 5\n3 f 16\n", consumption.Options{Reports: consumption.Totals, Legacy: true})
	if got := l.find(t, "totals "+memory); got != "86399999:10 1:15 3:10" {
		t.Errorf("%q", got)
	}
}

func TestRefCount(t *testing.T) {
	const text = "refcount 1 object\n1 a 16 10 0 1\n2 a 16 10 0 1\n3 f 16 0 0 1\n4 f 16 0 0 1\n"
	_, l := count(t, text, consumption.Options{Reports: consumption.Totals})
	if got := l.find(t, `totals Resource "object"`); got != "1:10 4:0" {
		t.Errorf("%q", got)
	}
	_, l = count(t, text, consumption.Options{Reports: consumption.Totals, Legacy: true})
	if got := l.find(t, `totals Resource "object"`); got != "1:10 2:20 3:10" {
		t.Errorf("legacy: %q", got)
	}
}

// A context that is declared late counts from the beginning. A block stays in
// the contexts in which it was allocated.
func TestContexts(t *testing.T) {
	const text = "1 a 16 10\n2 a 32 5 1\n3 a 48 1 3\ncontext 2 b\ncontext 1 a\n4 f 32\n5 f 48 0 2\n"
	_, l := count(t, text, consumption.Options{Reports: consumption.Totals | consumption.Activity, Slice: 4 * ms})
	for name, want := range map[string]string{
		`totals Resource "memory (no contexts)"`:         "1:10",
		`totals Resource "memory (a)"`:                   "2:5 3:6 4:1 5:0",
		`totals Resource "memory (b)"`:                   "3:1 5:0",
		`activity Resource "memory (rate:a)"`:            "3:5 5:6 7:1",
		`activity Resource "memory (frees:b)"`:           "3:0 5:0 7:1",
		`activity Resource "memory (frees:no contexts)"`: "3:0 5:1 7:1",
		`activity Resource "memory (allocs:all)"`:        "3:2 5:3 7:1",
	} {
		if got := l.find(t, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Values are at regular times whatever the distance of calls, and the default
// slice is a twentieth with one digit.
func TestActivity(t *testing.T) {
	u, l := count(t, "100 a 16 10\n101 a 32 1\n200 f 16\n1130 a 16 7\n", consumption.Options{Reports: consumption.Activity})
	if u.Slice() != 50*ms {
		t.Errorf("slice %d ms, want 50", u.Slice()/ms)
	}
	rate := strings.Fields(l.find(t, `activity Resource "memory (rate:all)"`))
	if len(rate) != 42 || rate[0] != "125:11" || rate[1] != "150:11" || rate[2] != "175:0" || rate[41] != "1150:7" {
		t.Errorf("%q", rate)
	}
	want := consumption.Rates{
		Bytes: consumption.Rate{Count: 2, Bytes: 11, At: 125 * ms, Found: true}, Allocs: consumption.Rate{Count: 2, Bytes: 11, At: 125 * ms, Found: true},
		Frees: consumption.Rate{Count: 1, At: 225 * ms, Found: true},
	}
	if diff := cmp.Diff(want, u.Kinds()[0].Rates); diff != "" {
		t.Errorf("peaks (-want +got)\n%s", diff)
	}
}

// The original takes one step per call at most, and one digit of the slice.
func TestActivityLegacy(t *testing.T) {
	_, l := count(t, "100 a 16 10\n1000 a 32 1\n1001 a 48 2\n", consumption.Options{Reports: consumption.Activity, Legacy: true, Slice: 290 * ms})
	if got, want := l.find(t, `activity Resource "memory (rate:all)"`), "200:10 300:11 400:3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := l.find(t, `activity Resource "memory (peak frees:00:00:00.000"`); got != "0:0 0:11" {
		t.Errorf("%q", got)
	}
}

func TestLifetime(t *testing.T) {
	u, l := count(t, "1 a 16 10\n2 a 32 5\n3 f 16\n4 a 16 3\n9 f 99\n", consumption.Options{Reports: consumption.Lifetime})
	if got, want := l.find(t, `lifetime Resource "memory (\\@0)"`), "1:10 3:10 | 4:3 9:3 | 2:5 9:5 |"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	k := u.Kinds()[0]
	if k.Lives.Average != 6 || k.Lives.Median != 5 || k.Smallest.Size != 3 || k.Largest.Count != 1 {
		t.Errorf("%+v", k)
	}
	want := []consumption.Line{{ID: 16, Size: 10, To: 2 * ms}, {ID: 16, Size: 3, From: 3 * ms, To: 8 * ms}, {ID: 32, Size: 5, From: ms, To: 8 * ms}}
	if diff := cmp.Diff(want, k.Lives.Lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// Legacy: to the last allocation.
	_, l = count(t, "1 a 16 10\n2 a 32 5\n9 f 16\n", consumption.Options{Reports: consumption.Lifetime, Legacy: true})
	if got, want := l.find(t, `lifetime Resource "memory (\\@0)"`), "1:10 9:10 | 2:5 2:5 |"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Rows cover exactly the times at which blocks lived.
func TestRows(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "%d a 16 %d\n%d f 16\n", 1+10*i, 10+i%2, 4+10*i)
	}
	u, _ := count(t, text.String(), consumption.Options{Reports: consumption.Lifetime, Columns: 500})
	m := u.Kinds()[0].Lives.Masks
	if len(m) != 1 || m[0].Columns() != 500 {
		t.Fatalf("%d masks", len(m))
	}
	rows := m[0].Rows(func(size uint64) int { return int(size) })
	if len(rows) != 2 || rows[0].Key != 10 || len(rows[0].Runs) != 50 || len(rows[1].Runs) != 50 {
		t.Fatalf("%v", rows)
	}
	// 993 ms are 500 columns: the third block of size 10 lives from 40 to 43 ms.
	if got := rows[0].Runs[2]; got[0] != 20 || got[1] != 21 {
		t.Errorf("%v", got)
	}
	if rows = m[0].Rows(func(uint64) int { return 0 }); len(rows) != 1 || len(rows[0].Runs) != 100 {
		t.Errorf("%v", rows)
	}
}

// A block that lives all the time is one run over all words of the row.
func TestLongLife(t *testing.T) {
	u, _ := count(t, "1 a 16 300\n5000 f 7\n", consumption.Options{Reports: consumption.Lifetime})
	rows := u.Kinds()[0].Lives.Masks[0].Rows(func(size uint64) int { return int(size) })
	if diff := cmp.Diff([]consumption.Row{{Key: 300, Runs: [][2]int{{0, 1023}}}}, rows); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSummaries(t *testing.T) {
	for _, tt := range []struct {
		sizes        []uint64
		want, legacy uint64
	}{
		{[]uint64{7}, 7, 7},
		{[]uint64{1, 4}, 2, 2}, // the original's is (4+0)/2
		{[]uint64{1, 5, 6}, 5, 5},
		{[]uint64{1, 2, 5, 9}, 3, 7},
		{[]uint64{math.MaxUint64, math.MaxUint64}, math.MaxUint64, math.MaxUint64 / 2},
	} {
		var text strings.Builder
		for i, s := range tt.sizes {
			fmt.Fprintf(&text, "1 a %d %d\n", 16*i, s)
		}
		for _, legacy := range []bool{false, true} {
			u, l := count(t, text.String(), consumption.Options{Reports: consumption.Count, Legacy: legacy})
			_, unfreed, both := u.Summaries(u.Kinds()[0])
			want, sum := tt.want, uint64(len(tt.sizes))
			if legacy {
				want, sum = tt.legacy, 0
			}
			if unfreed.Median != want || unfreed.Blocks != uint64(len(tt.sizes)) || both.Median != want || both.Blocks != sum {
				t.Errorf("%v, legacy %v: %+v, %+v", tt.sizes, legacy, unfreed, both)
			}
			if got := l.find(t, "histogram-count size"); !strings.HasPrefix(got, fmt.Sprintf("[%d ", tt.sizes[0])) {
				t.Error(got)
			}
		}
	}
}

func TestHistogram(t *testing.T) {
	const text = "resource 1 fd\nresource 2 memory\n1 a 3 1 0 1\n1 a 16 10 0 2\n1 a 32 10 0 2\n1 a 48 4 0 2\n2 f 32 0 0 2\n"
	_, l := count(t, text, consumption.Options{Reports: consumption.Count | consumption.Size})
	for name, want := range map[string]string{
		"histogram-count size of fd": "[1 1 0]", "histogram-count size of memory": "[4 1 0][10 1 1]", "histogram-size size of memory": "[4 4 0][10 10 10]",
	} {
		if got := l.find(t, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
