package heaptrack_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/heaptrack"
	"rtrace-bpf/trace"
)

const start = 7_000_000_000

func call(ms int64, c trace.Call) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, PID: 1, Time: start + ms*1e6, Call: c}
}

func locate(dst []stacks.Location, r *trace.Record) []stacks.Location {
	for _, addr := range r.Call.Stack.Frames {
		l := stacks.Location{Addr: addr, Mapping: stacks.Mapping{Path: "/bin/x y"}}
		if addr == 0x20 {
			l.Lines = []stacks.Line{{Function: "in\nlined", File: "a.c", Line: 255}, {Function: "f", File: "a.c", Line: 9}}
		}
		dst = append(dst, l)
	}
	return dst
}

// TestWriter compares a file with lines that were written by hand after heaptrack's source and
// one of its own files.
func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := heaptrack.NewWriter(&out, heaptrack.Options{Locate: locate, Count: func(r *trace.Record) bool { return r.Call.Size != 99 }})
	inner, outer := trace.Stack{Frames: []uint64{0x20, 0x10}}, trace.Stack{Frames: []uint64{0x10}}
	for _, r := range []*trace.Record{
		{Kind: trace.KindRSS, PID: 1, Time: start, RSS: trace.RSS{Bytes: 10 * 4096}},
		call(0, trace.Call{Op: trace.OpAlloc, ID: 0x100, Size: 16, Stack: inner}),
		call(20, trace.Call{Op: trace.OpAlloc, ID: 0x200, Size: 16, Stack: inner}),
		call(20, trace.Call{Op: trace.OpMove, OldID: 0x100, ID: 0x300, Size: 32, Stack: inner}),
		call(20, trace.Call{Op: trace.OpFree, ID: 0x999}),                          // not allocated
		call(20, trace.Call{Op: trace.OpAlloc, ID: 0x500, Size: 99, Stack: outer}), // not counted
		call(20, trace.Call{Op: trace.OpFree, ID: 0x500}),
		call(21, trace.Call{Op: trace.OpAlloc, ID: 0x400, Size: 16, Stack: outer}),
		call(21, trace.Call{Op: trace.OpAlloc, ID: 0x400, Size: 17}), // a free is missing
		{Kind: trace.KindLost, PID: 1, Time: start + 22e6, Lost: trace.Lost{Reason: trace.LostPaused, Count: 1}},
		call(30, trace.Call{Op: trace.OpFree, ID: 0x200}), // was unknown
		call(30, trace.Call{Op: trace.OpAlloc, ID: 0x600, Size: 16, Stack: outer}),
		{Kind: trace.KindExec, PID: 1, Time: start + 31e6},
	} {
		w.Add(r)
	}
	if err := w.Close("x y\x1b"); err != nil {
		t.Fatal(err)
	}
	if got, want := w.Unknown(), (live.Amount{Blocks: 3, Bytes: 16 + 32 + 17}); got != want {
		t.Errorf("unknown: %+v, not %+v", got, want)
	}
	lines := func(b []byte) [][]byte { return bytes.Split(b, []byte("\n")) }
	// The blocks at the gap end in no particular order.
	want := "v 10400 3\nI 1000 0\nR a\n" +
		"s 8 /bin/x y\ni 10 1\nt 1 0\ns 8 in?lined\ns 3 a.c\ns 1 f\ni 20 1 2 3 ff 4 3 9\nt 2 1\na 10 2\n+ 0\n" +
		"c 14\n+ 0\n- 0\na 20 2\n+ 1\n" +
		"c 15\na 10 1\n+ 2\na 11 0\n- 2\n+ 3\n" +
		"- 0\n- 1\n- 3\n" +
		"c 1e\n+ 2\n- 2\nX x y?\n"
	got := lines(out.Bytes())
	if len(got) > 30 {
		gap := got[len(got)-8 : len(got)-5]
		for i := range gap { // sorted
			for j := range i {
				if bytes.Compare(gap[i], gap[j]) < 0 {
					gap[i], gap[j] = gap[j], gap[i]
				}
			}
		}
	}
	if d := cmp.Diff(want, string(bytes.Join(got, []byte("\n")))); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriterReportsErrors(t *testing.T) {
	w := heaptrack.NewWriter(full{}, heaptrack.Options{Locate: locate})
	for i := range 10000 {
		w.Add(call(int64(i), trace.Call{Op: trace.OpAlloc, ID: uint64(16 + i), Size: uint64(i)}))
	}
	if err := w.Close("x"); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}
