package dhat_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/dhat"
)

// point is a program point as dh_main.c of valgrind documents it.
type point struct {
	TB, TBK, TL, MB, MBK, GB, GBK, EB, EBK uint64
	FS                                     []int
}

// TestWrite has stacks that differ only in what a file cannot show: viewers refuse the same
// stack twice.
func TestWrite(t *testing.T) {
	amounts := func(n uint64) usage.Usage {
		a := func(n uint64) live.Amount { return live.Amount{Blocks: n, Bytes: 10 * n} }
		return usage.Usage{Allocated: a(4 * n), Peak: a(3 * n), AtPeak: a(2 * n), Live: a(n)}
	}
	p := &stacks.Profile{
		Name: "demo\x1b", PID: 4711, Span: 3 * time.Second, PeakTime: 2 * time.Second,
		Locations: []stacks.Location{
			{Addr: 0xabc, Lines: []stacks.Line{{Function: "inlined", File: "a.c", Line: 3}, {Function: "f<int>&", File: "a.c", Line: 9}}},
			{Addr: 0x10, Lines: []stacks.Line{{Function: "main"}}},
			{Addr: 0x20, Mapping: stacks.Mapping{Path: "/lib/x.so"}},
			{Lines: []stacks.Line{{Function: "named", File: "b.c"}}},
			{Lines: []stacks.Line{{Function: "named", File: "b.c"}}, Mapping: stacks.Mapping{Path: "/a"}},
		},
		Samples: []stacks.Sample{
			{Stack: []int{0, 1}, Usage: amounts(100), Lived: 5000},
			{Stack: []int{2, 1}, Usage: amounts(10), Lived: 6},
			{Stack: []int{3}, Usage: amounts(1), Lived: 7},
			{Stack: []int{4}, Usage: amounts(2), Lived: 8},
			{Usage: amounts(3), Lived: 9},
		},
	}
	var out bytes.Buffer
	if err := dhat.Write(&out, p, stacks.InuseSpace); err != nil {
		t.Fatal(err)
	}
	var got struct {
		DHATFileVersion, PID, TG, TE, TUTH int
		Mode, Verb, TU, MTU, Cmd           string
		BKLT, BKAcc                        bool
		PPS                                []point
		FTBL                               []string
	}
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.DHATFileVersion != 2 || got.PID != 4711 || got.TG != 2_000_000 || got.TE != 3_000_000 || !got.BKLT || got.BKAcc || got.TU != "µs" || got.MTU != "s" || got.Cmd != "demo?" {
		t.Errorf("head: %+v", got)
	}
	frames := []string{"[root]", "0xABC: inlined (a.c:3)", "0xABC: f<int>& (a.c:9)", "0x10: main", "0x20: ?? (in /lib/x.so)", "named (b.c)", "??"}
	if diff := cmp.Diff(frames, got.FTBL); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	want := []point{
		{4000, 400, 5000, 3000, 300, 2000, 200, 1000, 100, []int{1, 2, 3}},
		{400, 40, 6, 300, 30, 200, 20, 100, 10, []int{4, 3}},
		{120, 12, 15, 90, 9, 60, 6, 30, 3, []int{5}},
		{120, 12, 9, 90, 9, 60, 6, 30, 3, []int{6}},
	}
	if diff := cmp.Diff(want, got.PPS); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

func TestWriteNothing(t *testing.T) {
	var out bytes.Buffer
	if err := dhat.Write(&out, &stacks.Profile{}, stacks.InuseSpace); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"pps":[]`, `"ftbl":["[root]"]`} {
		if !bytes.Contains(out.Bytes(), []byte(part)) {
			t.Errorf("no %s in %s", part, &out)
		}
	}
}
