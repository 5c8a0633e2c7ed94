package sprtrace

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"rtrace-bpf/trace"
)

// unhex returns the bytes of hexadecimal text. It ignores spaces; characters between
// single quotes stand for themselves.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	var out []byte
	for i, part := range strings.Split(text, "'") {
		if i%2 == 1 {
			out = append(out, part...)
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(part, " ", ""))
		if err != nil {
			t.Fatalf("%q: %v", part, err)
		}
		out = append(out, b...)
	}
	return out
}

// write encodes records without closing and returns the bytes and the counters.
func write(t testing.TB, opts Options, recs ...*trace.Record) ([]byte, Stats) {
	t.Helper()
	var out bytes.Buffer
	e, err := New(&out, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		if err := e.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	s := e.Stats()
	if s.Bytes != int64(out.Len()) {
		t.Errorf("stats say %d bytes, wrote %d", s.Bytes, out.Len())
	}
	return out.Bytes(), s
}

const (
	hs20  = "f0 0e 02 00 06 'x86_64' 00 08 000000 "
	hs14  = "f0 0e 01 04 06 'x86_64' 00 08 000000 "
	pinf0 = "'PINF' 14000000 07000000 00000000 00000000 ffffffff 0200 0000 " // pid 7, nothing else known
	resr1 = "'RESR' 14000000 01000000 00000000 0600 'memory' 0200 'd' 00 "
)

var (
	process  = &trace.Record{Kind: trace.KindProcess, PID: 7, Process: trace.Process{Name: "", Depth: -1}}
	resource = &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory", Desc: "d"}}
)

func callOf(ns int64, c trace.Call) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, PID: 7, Time: ns, Call: c}
}

func TestPackets(t *testing.T) {
	malloc := trace.Call{
		Op: trace.OpAlloc, Function: "malloc", Resource: 1, Context: 2, Size: 100, ID: 0x55c9a22662a0,
		Stack: trace.Stack{Frames: []uint64{0x55c9757eb1b8, 1}},
	}
	open := malloc
	open.Function = "open"
	open.Args = []trace.Arg{{Name: "path", Value: "/"}, {Name: "flags", Value: ""}}
	move := malloc
	move.Op, move.Function, move.OldID, move.EntryTime = trace.OpMove, "realloc", 0x55c900000010, 2e9
	tests := []struct {
		name string
		opts Options
		recs []*trace.Record
		want string
	}{
		{"header alone", Options{}, []*trace.Record{{Kind: trace.KindHeader}}, hs20},
		{
			"header 32 bit",
			Options{},
			[]*trace.Record{{Kind: trace.KindHeader, Header: trace.Header{PointerSize: 4}}},
			"f0 0a 02 00 04 'i686' 00 04 00",
		},
		{
			"header big-endian",
			Options{},
			[]*trace.Record{{Kind: trace.KindHeader, Header: trace.Header{Arch: "s390x", BigEndian: true, PointerSize: 8}}},
			"f0 0a 02 00 05 's390x' 01 08",
		},
		{"header of the document", Options{Dialect: Document}, []*trace.Record{{Kind: trace.KindHeader}}, hs14},
		{
			"process",
			Options{},
			[]*trace.Record{{Kind: trace.KindProcess, PID: 1234, Process: trace.Process{Name: "./leak", WallTime: 0x60000000*1e9 + 123456789, Depth: 10}}},
			hs20 + "'PINF' 18000000 d2040000 00000060 40e20100 0a000000 0600 './leak'",
		},
		{
			"process of the document",
			Options{Dialect: Document},
			[]*trace.Record{{Kind: trace.KindProcess, PID: 1, Process: trace.Process{Name: "leaks", Depth: 10}}},
			hs14 + "'PINF' 18000000 01000000 00000000 00000000 0a000000 0500 'leaks' 00",
		},
		{
			"module",
			Options{},
			[]*trace.Record{{Kind: trace.KindTracerModule, TracerModule: trace.TracerModule{ID: 4, Major: 2, Minor: 3, Name: "mem"}}},
			hs20 + "'MINF' 10000000 04000000 03000200 0600 'mem' 000000",
		},
		{
			"resource",
			Options{},
			[]*trace.Record{{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "fd", Desc: "file", RefCount: true}}},
			hs20 + "'RESR' 14000000 02000000 01000000 0200 'fd' 0600 'file' 0000",
		},
		{
			"context",
			Options{},
			[]*trace.Record{{Kind: trace.KindContext, Context: trace.Context{ID: 4, Name: "phase"}}},
			hs20 + "'CTXR' 0c000000 04000000 0600 'phase' 00",
		},
		{
			"mapping: load base",
			Options{},
			[]*trace.Record{{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: 0x2000, End: 0x3000, Offset: 0x1000, Base: 0x1000, Path: "/a.out"}}},
			hs20 + "'MMAP' 18000000 0010000000000000 0030000000000000 0600 '/a.out'",
		},
		{
			"mapping: no base",
			Options{},
			[]*trace.Record{{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: 0x2000, End: 0x3000, Path: "/a.out"}}},
			hs20 + "'MMAP' 18000000 0020000000000000 0030000000000000 0600 '/a.out'",
		},
		{
			"mapping of the document: true start",
			Options{Dialect: Document},
			[]*trace.Record{{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: 0x2000, End: 0x3000, Offset: 0x1000, Base: 0x1000, Path: "/a.out"}}},
			hs14 + "'MMAP' 18000000 0020000000000000 0030000000000000 0600 '/a.out'",
		},
		{
			"attachment",
			Options{},
			[]*trace.Record{{Kind: trace.KindAttachment, Attachment: trace.Attachment{Name: "maps", Path: "m.txt"}}},
			hs20 + "'FILE' 10000000 0600 'maps' 0000 0600 'm.txt' 00",
		},
		{
			"heap",
			Options{},
			[]*trace.Record{{Kind: trace.KindHeapInfo, HeapInfo: trace.HeapInfo{Bottom: 0x557e926d8000, Top: 0x557e926f9000, Arena: 1, OrdBlks: 2, SmBlks: 3, HBlks: 4, HBlkHd: 5, UsmBlks: 6, FsmBlks: 7, UordBlks: 8, FordBlks: 9, KeepCost: 10}}},
			hs20 + "'HINF' 38000000 00806d927e550000 00906f927e550000 01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000 09000000 0a000000",
		},
		{
			"call",
			Options{},
			[]*trace.Record{process, resource, callOf(2542936e6, malloc)},
			hs20 + pinf0 + resr1 +
				"'CALL' 24000000 01000000 02000000 58cd2600 02000000 0600 'malloc' 64000000 a06226a2c9550000" +
				"'BTRC' 14000000 02000000 b8b17e75c9550000 0100000000000000",
		},
		{
			"call with arguments",
			Options{},
			[]*trace.Record{process, resource, callOf(0, open)},
			hs20 + pinf0 + resr1 +
				"'CALL' 24000000 01000000 02000000 00000000 02000000 0600 'open' 0000 64000000 a06226a2c9550000" +
				"'ARGS' 1c000000 02000000 0600 'path' 0000 0200 '/' 00 0600 'flags' 00 0200 0000" +
				"'BTRC' 14000000 02000000 b8b17e75c9550000 0100000000000000",
		},
		{
			"call of the document",
			Options{Dialect: Document},
			[]*trace.Record{process, resource, callOf(2542936e6, open)},
			hs14 + strings.Replace(pinf0, "0200 0000", "0000 0000", 1) + strings.Replace(resr1, "0200 'd'", "0100 'd'", 1) +
				"'CALL' 24000000 58cd2600 00000000 02000000 02000000 0400 'open' 0000 a06226a2c9550000 64000000" +
				"'BTRC' 14000000 02000000 b8b17e75c9550000 0100000000000000" +
				"'ARGS' 1c000000 02000000 0400 'path' 0000 0100 '/' 00 0500 'flags' 00 0000 0000",
		},
		{
			"free and undefined call",
			Options{},
			[]*trace.Record{
				process, resource,
				callOf(1e6, trace.Call{Op: trace.OpFree, Function: "free", Resource: 1, ID: 16, Stack: trace.Stack{Frames: []uint64{5}}}),
				callOf(2e6, trace.Call{Op: trace.OpNone, Function: "f", Resource: 1, ID: 16}),
			},
			hs20 + pinf0 + resr1 +
				"'CALL' 24000000 01000000 00000000 01000000 01000000 0600 'free' 0000 00000000 1000000000000000" +
				"'BTRC' 0c000000 01000000 0500000000000000" +
				"'CALL' 20000000 01000000 00000000 02000000 00000000 0200 'f' 00 00000000 1000000000000000" +
				"'BTRC' 04000000 00000000",
		},
		{
			"move",
			Options{},
			[]*trace.Record{process, resource, callOf(3e9, move)},
			hs20 + pinf0 + resr1 +
				"'CALL' 28000000 01000000 02000000 d0070000 01000000 0a00 'realloc' 000000 00000000 10000000c9550000" +
				"'BTRC' 04000000 00000000" +
				"'CALL' 28000000 01000000 02000000 b80b0000 02000000 0a00 'realloc' 000000 64000000 a06226a2c9550000" +
				"'BTRC' 14000000 02000000 b8b17e75c9550000 0100000000000000",
		},
		{
			"move with both stacks",
			Options{BacktraceAll: true},
			[]*trace.Record{process, resource, callOf(3e9, move)},
			hs20 + pinf0 + resr1 +
				"'CALL' 28000000 01000000 02000000 d0070000 01000000 0a00 'realloc' 000000 00000000 10000000c9550000" +
				"'BTRC' 14000000 02000000 b8b17e75c9550000 0100000000000000" +
				"'CALL' 28000000 01000000 02000000 b80b0000 02000000 0a00 'realloc' 000000 64000000 a06226a2c9550000" +
				"'BTRC' 14000000 02000000 b8b17e75c9550000 0100000000000000",
		},
		{
			"call 32 bit big-endian",
			Options{},
			[]*trace.Record{
				{Kind: trace.KindHeader, Header: trace.Header{Arch: "ppc", PointerSize: 4, BigEndian: true}},
				process,
				callOf(1e6, trace.Call{Op: trace.OpAlloc, Function: "malloc", Size: 1, ID: 0x10000010, Stack: trace.Stack{Frames: []uint64{0x10000000}}}),
			},
			"f0 0a 02 00 03 'ppc' 01 04 0000 'FNIP' 00000014 00000007 00000000 00000000 ffffffff 0002 0000" +
				"'LLAC' 00000020 00000000 00000000 00000001 00000002 0006 'malloc' 00000001 10000010" +
				"'CRTB' 00000008 00000001 10000000",
		},
		{
			"call first: process and resource are made up",
			Options{},
			[]*trace.Record{callOf(1e6, trace.Call{Op: trace.OpFree, Function: "free", Resource: 3, ID: 16})},
			hs20 + pinf0 + "'RESR' 18000000 03000000 00000000 0a00 'unknown' 000000 0200 0000" +
				"'CALL' 24000000 03000000 00000000 01000000 01000000 0600 'free' 0000 00000000 1000000000000000" +
				"'BTRC' 04000000 00000000",
		},
		{
			"opaque, not kept",
			Options{},
			[]*trace.Record{process, {Kind: trace.KindOpaque, Opaque: trace.Opaque{Format: "sp-rtrace", ID: 0x575a5958, Data: []byte("abcd")}}},
			hs20 + pinf0,
		},
		{
			"opaque, kept",
			Options{KeepOpaque: true},
			[]*trace.Record{process, {Kind: trace.KindOpaque, Opaque: trace.Opaque{Format: "sp-rtrace", ID: 0x575a5958, Data: []byte("abcd")}}},
			hs20 + pinf0 + "'XYZW' 04000000 'abcd'",
		},
		{
			"opaque of another format",
			Options{KeepOpaque: true},
			[]*trace.Record{process, {Kind: trace.KindOpaque, Opaque: trace.Opaque{Format: "mtrc", ID: 1}}},
			hs20 + pinf0,
		},
		{
			"second header",
			Options{},
			[]*trace.Record{process, resource, {Kind: trace.KindHeader}, callOf(1e6, trace.Call{Op: trace.OpFree, Function: "free", ID: 16})},
			hs20 + pinf0 + resr1 + hs20 + pinf0 +
				"'CALL' 24000000 00000000 00000000 01000000 01000000 0600 'free' 0000 00000000 1000000000000000" +
				"'BTRC' 04000000 00000000",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := write(t, tt.opts, tt.recs...)
			if want := unhex(t, tt.want); !bytes.Equal(got, want) {
				t.Errorf("got  %x\nwant %x", got, want)
			}
		})
	}
}

// The document's 0 for the only resource ends with the second resource.
func TestDocumentResource(t *testing.T) {
	second := &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "fd"}}
	c := callOf(1e6, trace.Call{Op: trace.OpFree, Function: "f", Resource: 1, ID: 16})
	got, _ := write(t, Options{Dialect: Document}, process, resource, c, second, c)
	for i, want := range []string{"01000000 00000000", "01000000 01000000"} {
		_, rest, ok := bytes.Cut(got, unhex(t, "'CALL' 20000000"))
		if !ok {
			t.Fatalf("no call %d", i)
		}
		if !bytes.HasPrefix(rest, unhex(t, want)) {
			t.Errorf("call %d begins with %x, want %s", i, rest[:8], want)
		}
		got = rest
	}
}

func TestTimestamps(t *testing.T) {
	const day = 86_400_000
	tests := []struct {
		name  string
		times []int64 // ns
		want  []uint32
	}{
		{"none", []int64{0, 0}, []uint32{0, 0}},
		{"before 0", []int64{-5}, []uint32{0}},
		{"0 ms is a time", []int64{1, 999_999}, []uint32{1, 1}},
		{"midnight is a time", []int64{day * 1e6}, []uint32{1}},
		{"whole ms", []int64{1_999_999, 2_000_000}, []uint32{1, 2}},
		{"late ones", []int64{5e6, 4e6, 6e6}, []uint32{5, 5, 6}},
		{"none between", []int64{5e6, 0, 4e6}, []uint32{5, 0, 5}},
		{"over midnight", []int64{(day - 1) * 1e6, (day + 2) * 1e6, (day + 1) * 1e6}, []uint32{day - 1, 2, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var recs []*trace.Record
			for _, ns := range tt.times {
				recs = append(recs, callOf(ns, trace.Call{Op: trace.OpFree, Function: "f"}))
			}
			got, _ := write(t, Options{}, recs...)
			for i, want := range tt.want {
				_, rest, ok := bytes.Cut(got, unhex(t, "'CALL' 20000000 00000000 00000000"))
				if !ok {
					t.Fatalf("no call %d", i)
				}
				if ms := uint32(rest[0]) | uint32(rest[1])<<8 | uint32(rest[2])<<16 | uint32(rest[3])<<24; ms != want {
					t.Errorf("call %d: %d ms, want %d", i, ms, want)
				}
				got = rest
			}
		})
	}
}

func TestOptions(t *testing.T) {
	if _, err := New(nil, Options{Dialect: 2}); err == nil {
		t.Error("dialect 2 was accepted")
	}
}

func TestCallPackets(t *testing.T) {
	for op, want := range map[trace.Op]int{trace.OpNone: 1, trace.OpAlloc: 1, trace.OpFree: 1, trace.OpMove: 2, 77: 0} {
		c := trace.Call{Op: op, Function: "f"}
		if got := CallPackets(&c); got != want {
			t.Errorf("%s: %d, want %d", op, got, want)
		}
		_, s := write(t, Options{}, callOf(1, c))
		if int(s.Calls) != want || (s.Dropped == 1) != (want == 0) {
			t.Errorf("%s: wrote %d calls, dropped %d; want %d", op, s.Calls, s.Dropped, want)
		}
	}
}

func TestDroppedKinds(t *testing.T) {
	for _, k := range []trace.Kind{
		trace.KindThread, trace.KindModule, trace.KindUnmapping, trace.KindComment, trace.KindExec,
		trace.KindExit, trace.KindLost, trace.KindRSS, trace.KindWindow, trace.KindCost, trace.KindEnd, trace.KindNone, 200,
	} {
		got, s := write(t, Options{KeepOpaque: true}, &trace.Record{Kind: k})
		if len(got) != 0 || s.Dropped != 1 {
			t.Errorf("%s: %d bytes, dropped %d", k, len(got), s.Dropped)
		}
	}
}

func TestCloseMakesValidTrace(t *testing.T) {
	var out bytes.Buffer
	e, err := New(&out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	want := unhex(t, hs20+"'PINF' 14000000 00000000 00000000 00000000 ffffffff 0200 0000")
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("got  %x\nwant %x", out.Bytes(), want)
	}
	if err := e.Close(); err != nil || out.Len() != len(want) {
		t.Errorf("second close: %v, %d bytes", err, out.Len())
	}
}

var errFull = errors.New("disk full")

// failing takes room bytes, then fails.
type failing struct {
	room  int
	short bool // take fewer bytes without an error
}

func (f *failing) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	if n < len(b) && !f.short {
		return n, errFull
	}
	return n, nil
}

func TestWriteErrorSticks(t *testing.T) {
	for _, w := range []*failing{{room: 10}, {room: 10, short: true}} {
		e, err := New(w, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.WriteRecord(process); err != nil {
			t.Fatalf("nothing is written out yet, but %v", err)
		}
		err = e.Flush()
		if err == nil || !w.short && !errors.Is(err, errFull) {
			t.Fatalf("error %v", err)
		}
		w.room = 1 << 20
		for name, again := range map[string]error{"write": e.WriteRecord(process), "flush": e.Flush(), "close": e.Close()} {
			if !errors.Is(again, err) {
				t.Errorf("%s after the error: %v", name, again)
			}
		}
		if w.room != 1<<20 {
			t.Error("something was written after the error")
		}
	}
}
