package sprtrace_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	decoder "rtrace-bpf/decoder/sprtrace"
	"rtrace-bpf/encoder/sprtrace"
	"rtrace-bpf/trace"
)

// encode writes and closes.
func encode(t testing.TB, opts sprtrace.Options, recs ...*trace.Record) ([]byte, sprtrace.Stats) {
	t.Helper()
	var out bytes.Buffer
	e, err := sprtrace.New(&out, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		if err := e.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), e.Stats()
}

// decode reads strictly: the writer's output has nothing odd in it.
func decode(t testing.TB, data []byte) []*trace.Record {
	t.Helper()
	d, err := decoder.New(bytes.NewReader(data), decoder.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	recs, err := trace.Load(d)
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

// largest returns the size of the largest packet.
func largest(t testing.TB, data []byte) int {
	t.Helper()
	w, err := decoder.NewWalker(bytes.NewReader(data), decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	var p decoder.Packet
	for w.Next(&p) == nil {
		size = max(size, len(p.Raw))
	}
	return size
}

func repeat(s string, n int) string { return strings.Repeat(s, n) }

func TestLimits(t *testing.T) {
	long := repeat("x", 10_000)
	args := func(n int, name, value string) *trace.Record {
		r := &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Function: "f"}}
		for range n {
			r.Call.Args = append(r.Call.Args, trace.Arg{Name: name, Value: value})
		}
		return r
	}
	tests := []struct {
		name    string
		rec     *trace.Record
		stats   sprtrace.Stats // only the counters of cuts
		largest int            // packet; 0 for any
		check   func(r *trace.Record) bool
	}{
		{
			"frames", &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Stack: trace.Stack{Frames: make([]uint64, 300)}}},
			sprtrace.Stats{CutStacks: 1, CutFrames: 47},
			8 + 4 + 253*8,
			func(r *trace.Record) bool { return len(r.Call.Stack.Frames) == 253 },
		},
		{
			"function name", &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Function: long, ID: 9, Size: 8}},
			sprtrace.Stats{CutStrings: 1},
			4096,
			func(r *trace.Record) bool {
				return r.Call.Function == long[:4096-8-16-2-12] && r.Call.ID == 9 && r.Call.Size == 8
			},
		},
		{
			"size", &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Size: 1 << 31}},
			sprtrace.Stats{Clamped: 1},
			0,
			func(r *trace.Record) bool { return r.Call.Size == 1<<31-1 },
		},
		{
			"largest size", &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Size: 1<<31 - 1}},
			sprtrace.Stats{},
			0,
			func(r *trace.Record) bool { return r.Call.Size == 1<<31-1 },
		},
		{
			"resource of a call", &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Resource: 33}},
			sprtrace.Stats{Clamped: 1},
			0,
			func(r *trace.Record) bool { return r.Call.Resource == 0 },
		},
		{
			"last resource of a call", &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Resource: 32}},
			sprtrace.Stats{},
			0,
			func(r *trace.Record) bool { return r.Call.Resource == 32 },
		},
		{"resource", &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 33}}, sprtrace.Stats{Dropped: 1}, 0, nil},
		{"resource 0", &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 0}}, sprtrace.Stats{Dropped: 1}, 0, nil},
		{
			"resource texts", &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: long, Desc: long}},
			sprtrace.Stats{CutStrings: 2},
			4096,
			func(r *trace.Record) bool { return len(r.Resource.Type) == 255 && len(r.Resource.Desc) > 3800 },
		},
		{
			"path", &trace.Record{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: 1, End: 2, Path: long}},
			sprtrace.Stats{CutStrings: 1},
			4096,
			func(r *trace.Record) bool { return len(r.Mapping.Path) == 4096-8-16-2 },
		},
		{
			"process name", &trace.Record{Kind: trace.KindProcess, Process: trace.Process{Name: long}},
			sprtrace.Stats{CutStrings: 1},
			4096,
			func(r *trace.Record) bool { return len(r.Process.Name) == 4096-8-16-2 },
		},
		{
			"module name", &trace.Record{Kind: trace.KindTracerModule, TracerModule: trace.TracerModule{Name: long}},
			sprtrace.Stats{CutStrings: 1},
			4096, nil,
		},
		{"context name", &trace.Record{Kind: trace.KindContext, Context: trace.Context{ID: 1, Name: long}}, sprtrace.Stats{CutStrings: 1}, 4096, nil},
		{
			"attachment", &trace.Record{Kind: trace.KindAttachment, Attachment: trace.Attachment{Name: long, Path: long}},
			sprtrace.Stats{CutStrings: 2},
			4096, nil,
		},
		{
			"NUL", &trace.Record{Kind: trace.KindContext, Context: trace.Context{ID: 1, Name: "ab\x00cd"}},
			sprtrace.Stats{CutStrings: 1},
			0,
			func(r *trace.Record) bool { return r.Context.Name == "ab" },
		},
		{
			"no half characters", &trace.Record{Kind: trace.KindContext, Context: trace.Context{ID: 1, Name: "x" + repeat("é", 3000)}},
			sprtrace.Stats{CutStrings: 1},
			0,
			func(r *trace.Record) bool { return r.Context.Name == "x"+repeat("é", (4096-8-4-2-1)/2) },
		},
		{
			"no characters at all", &trace.Record{Kind: trace.KindContext, Context: trace.Context{ID: 1, Name: repeat("\x80", 5000)}},
			sprtrace.Stats{CutStrings: 1},
			0,
			func(r *trace.Record) bool { return r.Context.Name == repeat("\x80", 4096-8-4-2) },
		},
		{
			"long value", args(1, "n", long),
			sprtrace.Stats{CutStrings: 1},
			4096,
			func(r *trace.Record) bool { return len(r.Call.Args) == 1 && len(r.Call.Args[0].Value) == 4096-8-4-4-2 },
		},
		{
			"long values", args(2, "n", long),
			sprtrace.Stats{CutStrings: 1, CutArgs: 1},
			4096,
			func(r *trace.Record) bool { return len(r.Call.Args) == 1 },
		},
		{
			"many arguments", args(1000, "ab", "cd"),
			sprtrace.Stats{CutArgs: 1000 - 510},
			0,
			func(r *trace.Record) bool { return len(r.Call.Args) == 510 && r.Call.Args[509].Value == "cd" },
		},
		{
			"long names", args(100, long, "v"),
			sprtrace.Stats{CutStrings: 15, CutArgs: 85},
			0,
			func(r *trace.Record) bool { return len(r.Call.Args) == 15 && len(r.Call.Args[14].Name) == 255 },
		},
		{
			"heap counts", &trace.Record{Kind: trace.KindHeapInfo, HeapInfo: trace.HeapInfo{Arena: 1 << 32, KeepCost: 1<<31 - 1, Top: 1 << 47}},
			sprtrace.Stats{Clamped: 1},
			0,
			func(r *trace.Record) bool {
				return r.HeapInfo == trace.HeapInfo{Arena: 1<<31 - 1, KeepCost: 1<<31 - 1, Top: 1 << 47}
			},
		},
		{
			"opaque", &trace.Record{Kind: trace.KindOpaque, Opaque: trace.Opaque{Format: "sp-rtrace", ID: 0x4746434f, Data: make([]byte, 4092)}},
			sprtrace.Stats{Dropped: 1},
			0, nil,
		},
		{
			"largest opaque", &trace.Record{Kind: trace.KindOpaque, Opaque: trace.Opaque{Format: "sp-rtrace", ID: 0x4746434f, Data: make([]byte, 4088)}},
			sprtrace.Stats{},
			4096,
			func(r *trace.Record) bool { return len(r.Opaque.Data) == 4088 },
		},
		{
			"depth", &trace.Record{Kind: trace.KindProcess, Process: trace.Process{Depth: 1 << 40}},
			sprtrace.Stats{},
			0,
			func(r *trace.Record) bool { return r.Process.Depth == 1<<31-1 },
		},
		{
			"arch", &trace.Record{Kind: trace.KindHeader, Header: trace.Header{Arch: long}},
			sprtrace.Stats{CutStrings: 1},
			256,
			func(r *trace.Record) bool { return r.Header.Arch == long[:248] },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data, stats := encode(t, sprtrace.Options{KeepOpaque: true}, tt.rec)
			cuts := sprtrace.Stats{
				CutStacks: stats.CutStacks, CutFrames: stats.CutFrames, CutStrings: stats.CutStrings, CutArgs: stats.CutArgs,
				Clamped: stats.Clamped, Dropped: stats.Dropped,
			}
			if cuts != tt.stats {
				t.Errorf("cuts %+v, want %+v", cuts, tt.stats)
			}
			if n := largest(t, data); n > 4096 || tt.largest != 0 && n != tt.largest {
				t.Errorf("largest packet %d, want %d", n, tt.largest)
			}
			found := false
			for _, r := range decode(t, data) {
				if r.Kind == tt.rec.Kind && tt.check != nil && tt.check(r) {
					found = true
				}
			}
			if found != (tt.check != nil) {
				t.Errorf("the record did not come back as it should")
			}
		})
	}
}

// chunks collects what each Write got.
type chunks struct{ all [][]byte }

func (c *chunks) Write(b []byte) (int, error) {
	c.all = append(c.all, bytes.Clone(b))
	return len(b), nil
}

// Each Write has whole packets, and all packets of a record.
func TestWritesHoldWholeRecords(t *testing.T) {
	var out chunks
	e, err := sprtrace.New(&out, sprtrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	big := &trace.Record{Kind: trace.KindCall, Time: 1e6, Call: trace.Call{
		Op: trace.OpMove, Function: repeat("f", 5000), Resource: 1, ID: 1, OldID: 2,
		Args: []trace.Arg{{Name: "a", Value: repeat("v", 5000)}}, Stack: trace.Stack{Frames: make([]uint64, 253)},
	}}
	small := &trace.Record{Kind: trace.KindCall, Time: 1e6, Call: trace.Call{Op: trace.OpFree, Function: "free", Resource: 1}}
	const n = 3000
	for i := range n {
		r := small
		if i%7 == 0 {
			r = big
		}
		if err := e.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if len(out.all) < 20 {
		t.Fatalf("only %d writes", len(out.all))
	}
	var sofar []byte
	last := -1
	for i, c := range out.all {
		if len(c) < 64<<10 && i < len(out.all)-1 {
			t.Errorf("write %d has only %d bytes", i, len(c))
		}
		sofar = append(sofar, c...)
	}
	// Decoding up to the end of each Write gives whole events: calls with their stacks,
	// and the free of a move never without the allocation.
	d, err := decoder.New(bytes.NewReader(sofar), decoder.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	ends := map[int64]bool{}
	var end int64
	for _, c := range out.all {
		end += int64(len(c))
		ends[end] = false
	}
	var r trace.Record
	freed := false
	for d.ReadRecord(&r) == nil {
		if r.Kind != trace.KindCall {
			continue
		}
		if r.Call.Stack.End == trace.StackAbsent {
			t.Fatal("a call without a stack")
		}
		freed = r.Call.Op == trace.OpFree && r.Call.ID == 2
		if at := d.Stats().Bytes; !freed {
			if _, ok := ends[at]; ok {
				ends[at] = true
			}
		}
		last++
	}
	for at, whole := range ends {
		if !whole {
			t.Errorf("the write that ends at %d ends inside of an event", at)
		}
	}
	if want := n + (n+6)/7 - 1; last != want {
		t.Errorf("last call %d, want %d", last, want)
	}
}

func TestFlushPassesOn(t *testing.T) {
	var out chunks
	e, err := sprtrace.New(&out, sprtrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpFree, Function: "free"}}
	for range 3 {
		if err := e.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := e.Flush(); err != nil { // there is nothing to do
			t.Fatal(err)
		}
	}
	if len(out.all) != 3 {
		t.Errorf("%d writes, want 3", len(out.all))
	}
}

// If pointers have 4 bytes, a mapping above them is left out, not cut: it belongs to a
// 64-bit program that a 32-bit process became.
func TestMappingsOfWiderPrograms(t *testing.T) {
	mapping := func(start, end uint64) *trace.Record {
		return &trace.Record{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: start, End: end, Path: "/bin/prog"}}
	}
	for name, dialect := range map[string]sprtrace.Dialect{"wire": sprtrace.Wire, "document": sprtrace.Document} {
		t.Run(name, func(t *testing.T) {
			data, stats := encode(t, sprtrace.Options{Dialect: dialect},
				&trace.Record{Kind: trace.KindHeader, Header: trace.Header{PointerSize: 4}},
				mapping(0xf7000000, 0xfffff000), mapping(0x7f0099c1f000, 0x7f0099c46000))
			var ends []uint64
			for _, r := range decode(t, data) {
				if r.Kind == trace.KindMapping {
					ends = append(ends, r.Mapping.End)
				}
			}
			if !slices.Equal(ends, []uint64{0xfffff000}) || stats.Dropped != 1 {
				t.Errorf("mappings that end at %#x, %d records dropped; want 0xfffff000 and 1", ends, stats.Dropped)
			}
		})
	}
}
