package digestview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/trace"
)

// deep returns a result of n stacks of the given depth, with names of the given
// length that must all be escaped.
func deep(n, depth, name int) *digest.Result {
	d := digest.New(digest.Options{})
	r := &trace.Record{Kind: trace.KindCall}
	c := &r.Call
	for i := range n {
		*c = trace.Call{Op: trace.OpAlloc, ID: uint64(i + 1), Size: uint64(i%1000) + 1, Function: "malloc"}
		for k := range depth {
			at := i*depth + k
			if k >= depth/2 {
				at = k // the outer half is shared
			}
			c.Stack.Frames = append(c.Stack.Frames, uint64(at+1))
			c.Stack.Names = append(c.Stack.Names, fmt.Sprintf("f%d%s", at, strings.Repeat("<", name)))
		}
		c.Stack.End = trace.StackComplete
		r.Time = int64(i + 1)
		d.Add(r)
		if i%2 == 1 {
			*c = trace.Call{Op: trace.OpFree, ID: uint64(i + 1)}
			d.Add(r)
		}
	}
	return d.Finish()
}

// The page is small for any input, and the parts left out are in the sums of
// others: all stacks together add up to the total.
func TestBounded(t *testing.T) {
	for _, tt := range []struct {
		name              string
		n, depth, name2   int
		left              bool
		limit, leastNodes int
	}{
		{"few", 50, 6, 3, false, 110_000, 50 * 3},
		{"many stacks", 40_000, 4, 3, true, 5_000_000, 10_000},
		{"deep stacks", 300, 1000, 3, true, 5_000_000, 10_000},
		{"long names", 2000, 8, 5000, true, 5_000_000, 500},
	} {
		r := deep(tt.n, tt.depth, tt.name2)
		var out bytes.Buffer
		if err := WriteHTML(&out, r, Options{}); err != nil {
			t.Fatal(err)
		}
		if out.Len() > tt.limit {
			t.Errorf("%s: the page has %d bytes", tt.name, out.Len())
		}
		p := build(r)
		t.Logf("%s: %d bytes, %d nodes", tt.name, out.Len(), len(p.Nodes.Parent))
		if len(p.Nodes.Parent) < tt.leastNodes || len(p.Nodes.Parent) > 2*maxNodes {
			t.Errorf("%s: %d nodes", tt.name, len(p.Nodes.Parent))
		}
		of := &p.Resources[0]
		sum := uses{}
		for _, u := range of.Stacks.Uses {
			sum.add(&u)
		}
		if want := usesOfUse(&r.Resources[0].Total); sum != want || of.Total != want {
			t.Errorf("%s: the stacks are %v, want %v", tt.name, sum, want)
		}
		if n := of.Stacks.First + of.Stacks.Left; n != tt.n || of.Stacks.Left > 0 != tt.left {
			t.Errorf("%s: %d stacks, %d of them left out", tt.name, n, of.Stacks.Left)
		}
		var self uses
		for _, row := range of.Functions.Rows {
			u := row[2].(uses)
			self.add(&u)
		}
		if self.add(&of.Functions.Rest); self != sum {
			t.Errorf("%s: the functions are %v, want %v", tt.name, self, sum)
		}
		for i := 1; i < len(p.Nodes.Parent); i++ {
			if p.Nodes.Parent[i] >= i || p.Nodes.Frame[i] >= len(p.Frames.Function) || p.Nodes.Frame[i] < 0 && i < of.Stacks.Node[0] {
				t.Fatalf("%s: node %d is %d below %d", tt.name, i, p.Nodes.Frame[i], p.Nodes.Parent[i])
			}
		}
	}
}

// The largest stacks stay.
func TestLargestStay(t *testing.T) {
	d := digest.New(digest.Options{})
	r := &trace.Record{Kind: trace.KindCall}
	for i := range 30_000 {
		size := uint64(1)
		if i%5000 == 4999 {
			size = 1 << 20
		}
		r.Call = trace.Call{Op: trace.OpAlloc, ID: uint64(i + 1), Size: size, Stack: trace.Stack{Frames: []uint64{uint64(i + 1), 5, 4}, End: trace.StackComplete}}
		d.Add(r)
	}
	p := build(d.Finish())
	of := &p.Resources[0]
	large := 0
	for i := range of.Stacks.First {
		if of.Stacks.Uses[i][1] == 1<<20 {
			large++
		}
	}
	if large != 6 || of.Stacks.First != maxStacks || of.Stacks.Left != 30_000-maxStacks {
		t.Errorf("%d large ones, %d stacks, %d left out", large, of.Stacks.First, of.Stacks.Left)
	}
	// The others are attached where they branch off.
	if n := len(of.Stacks.Node); n != maxStacks+1 {
		t.Fatalf("%d stacks with others", n)
	}
	other := of.Stacks.Node[maxStacks]
	if p.Nodes.Frame[other] != otherFrame || p.Frames.Address[p.Nodes.Frame[p.Nodes.Parent[other]]] == 0 {
		t.Errorf("others are node %d below %d", other, p.Nodes.Parent[other])
	}
}

// Every number of a trace is a valid number in the page.
func TestLargeNumbers(t *testing.T) {
	d := digest.New(digest.Options{})
	for i := range uint64(3) {
		d.Add(&trace.Record{Kind: trace.KindCall, Time: math.MaxInt64 - 5 + int64(i), Call: trace.Call{Op: trace.OpAlloc, ID: i, Size: math.MaxUint64, Function: "\xff\xfe\x00"}})
	}
	d.Add(&trace.Record{Kind: trace.KindCall, Time: math.MinInt64, Call: trace.Call{Op: trace.OpFree, ID: 1}})
	r := d.Finish()
	text, err := json.Marshal(build(r))
	if err != nil || !json.Valid(text) {
		t.Errorf("%v in %s", err, text)
	}
	if !slices.ContainsFunc(notes(r, &Options{}), func(n note) bool { return n.warn && strings.Contains(n.text, "2^64") }) {
		t.Error("no note about the overflow")
	}
}

func TestNotes(t *testing.T) {
	call := func(op trace.Op, id, size uint64, frames ...uint64) *trace.Record {
		r := &trace.Record{Kind: trace.KindCall, Time: 7e9 + int64(id), TID: 4, Call: trace.Call{Op: op, ID: id, Size: size}}
		r.Call.Stack.Frames = frames
		if len(frames) > 0 {
			r.Call.Stack.End = trace.StackComplete
		}
		return r
	}
	alloc, free := call(trace.OpAlloc, 1, 10, 5), call(trace.OpFree, 1, 0)
	other := call(trace.OpAlloc, 2, 20, 5)
	with := func(f func(*trace.Record)) *trace.Record {
		r := call(trace.OpAlloc, 2, 10, 5).Clone()
		f(r)
		return r
	}
	header := func(h trace.Header) *trace.Record { return &trace.Record{Kind: trace.KindHeader, Header: h} }
	for _, tt := range []struct {
		name    string
		records []*trace.Record
		options Options
		want    []string
	}{
		{"all well", []*trace.Record{alloc, other, free}, Options{}, nil},
		{"cut", []*trace.Record{alloc, other, free}, Options{Incomplete: "it is cut"}, []string{"could not be read to its end: it is cut"}},
		{"no frees", []*trace.Record{alloc, other}, Options{}, []string{"has no frees"}},
		{"no sizes", []*trace.Record{call(trace.OpAlloc, 1, 1, 5), call(trace.OpAlloc, 2, 1, 5), free}, Options{}, []string{"Sizes are meaningless"}},
		{"no times", []*trace.Record{with(func(r *trace.Record) { r.Time = 0 }), with(func(r *trace.Record) { r.Time, r.Call.Op = 0, trace.OpFree })}, Options{}, []string{"has no times"}},
		{"no stacks", []*trace.Record{call(trace.OpAlloc, 1, 10), free, call(trace.OpAlloc, 2, 10)}, Options{}, []string{"has no stacks: it is unknown where"}},
		{"callers", []*trace.Record{alloc, with(func(r *trace.Record) { r.Call.Stack, r.Call.Caller.Function = trace.Stack{}, "f" }), free}, Options{}, []string{"1 allocation without a stack"}},
		{"unmatched", []*trace.Record{alloc, other, free, free}, Options{}, []string{"1 free of blocks whose allocation is not in the trace"}},
		{"replaced", []*trace.Record{alloc, call(trace.OpAlloc, 1, 20, 5), call(trace.OpFree, 1, 0), other}, Options{}, []string{"1 allocation at the address of a live block"}},
		{"truncated", []*trace.Record{alloc, with(func(r *trace.Record) { r.Call.Stack.End = trace.StackTruncated }), free}, Options{}, []string{"Truncated to 1 frames: the outermost frames of 1 stack"}},
		{"failed", []*trace.Record{alloc, with(func(r *trace.Record) { r.Call.Stack.End = trace.StackFailed }), free}, Options{}, []string{"Incomplete: 1 stack"}},
		{"threads", []*trace.Record{with(func(r *trace.Record) { r.TID = 0 }), with(func(r *trace.Record) { r.TID, r.Call.Op, r.Time = 0, trace.OpFree, 9e9 })}, Options{}, []string{"does not distinguish threads"}},
		{"filtered", []*trace.Record{header(trace.Header{Filter: "leaks|resolve"}), alloc, other, free}, Options{}, []string{"was filtered: it contains only blocks that were still live at its end"}},
		{"resolved", []*trace.Record{header(trace.Header{Filter: "resolve"}), alloc, other, free}, Options{}, nil},
		{"two", []*trace.Record{header(trace.Header{}), alloc, other, free, header(trace.Header{})}, Options{}, []string{"contains 2 traces"}},
		{"exec", []*trace.Record{alloc, {Kind: trace.KindExec}, other, free}, Options{}, []string{"replaced by exec 1 time", "1 free of blocks"}},
		{"lost", []*trace.Record{
			alloc, other, free,
			{Kind: trace.KindLost, Lost: trace.Lost{Reason: "ring full", Count: 1200}},
			{Kind: trace.KindLost, Lost: trace.Lost{Reason: "gremlins", Count: 1}},
			{Kind: trace.KindLost, Time: 9e9, Lost: trace.Lost{Reason: trace.LostPaused, Count: 1, Since: 8e9}},
		}, Options{}, []string{"Lost 1,200 times: the buffer between the kernel and the tracer was full", "Lost 1 event: gremlins", "paused 1 time, for 1 s", "The 1,201 calls that are missing may include frees", "Unknown: 1 block (20 B)"}},
		{"late names", []*trace.Record{
			alloc, other, free, {Kind: trace.KindLost, Lost: trace.Lost{Reason: trace.LostNames, Count: 2}},
		}, Options{}, []string{"Lost 2 times: the kernel's record of a mapping or of a thread's name"}},
	} {
		d := digest.New(digest.Options{})
		for _, r := range tt.records {
			d.Add(r.Clone())
		}
		got := notes(d.Finish(), &tt.options)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %d notes, want %d: %v", tt.name, len(got), len(tt.want), got)
			continue
		}
		for _, want := range tt.want {
			if !slices.ContainsFunc(got, func(n note) bool { return strings.Contains(n.text, want) }) {
				t.Errorf("%s: no %q in %v", tt.name, want, got)
			}
		}
	}
}
