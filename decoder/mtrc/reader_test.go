package mtrc_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder/mtrc"
	"rtrace-bpf/trace"
)

// load reads all records after the three that begin a stream.
func load(t testing.TB, data string, o mtrc.Options) ([]*trace.Record, mtrc.Stats, error) {
	t.Helper()
	r, err := mtrc.NewReader(strings.NewReader(data), o)
	if err != nil {
		t.Fatal(err)
	}
	all, err := trace.Load(r)
	if len(all) < 3 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	if again := r.ReadRecord(new(trace.Record)); again == nil || err != nil && !errors.Is(again, err) {
		t.Errorf("after %v comes %v", err, again)
	}
	return all[3:], r.Stats(), err
}

func call(seq uint64, op trace.Op, index, id, old, size uint64) *trace.Record {
	function := map[trace.Op]string{trace.OpAlloc: "malloc", trace.OpFree: "free", trace.OpMove: "realloc"}[op]
	return &trace.Record{Kind: trace.KindCall, Call: trace.Call{
		Seq: seq, Op: op, Function: function, Resource: 1, ID: id, OldID: old, Size: size, Index: index,
	}}
}

func TestReader(t *testing.T) {
	end := &trace.Record{Kind: trace.KindEnd}
	// The source of an event that has none.
	const none = "\x00\x00\x00\x00"
	sourced := call(1, trace.OpAlloc, 1, 16, 0, 8)
	sourced.TID = 77
	sourced.Call.Caller = trace.Caller{Function: "_ZN1fEv", File: "f.cc", Line: 70000}
	kernel, posix := call(1, trace.OpAlloc, 1, 16, 0, 8), call(2, trace.OpFree, 1, 16, 0, 0)
	kernel.TID = 4194304
	posix.Call.Thread = 4194305
	realloced := call(1, trace.OpAlloc, 9, 16, 0, 8)
	realloced.Call.Function = "realloc"
	tests := []struct {
		name, data string
		want       []*trace.Record
		stats      mtrc.Stats
		strict     string // the expected error
	}{
		{
			"heap", "I\x01\x02H\x03\x04MTRC",
			[]*trace.Record{
				{Kind: trace.KindHeapGrow, HeapGrow: trace.HeapGrow{Address: 1, Size: 2, Internal: true}},
				{Kind: trace.KindHeapGrow, HeapGrow: trace.HeapGrow{Address: 3, Size: 4}},
				end,
			},
			mtrc.Stats{},
			"",
		},
		{
			"source", "A\x01\x10\x08\x4d\x81_ZN1fEv\x00\x81f.cc\x00\xf0\xa2\x04MTRC",
			[]*trace.Record{sourced, end},
			mtrc.Stats{Calls: 1},
			"",
		},
		{
			"threads", "A\x01\x10\x08\x80\x80\x80\x02\x00\x00\x00F\x01\x81\x80\x80\x02\x00\x00\x00MTRC",
			[]*trace.Record{kernel, posix, end},
			mtrc.Stats{Calls: 2},
			"",
		},
		{
			"moves", "A\x05\x10\x08" + none + "R\x05\x20\x09" + none + "R\x05\x20\x07" + none + "F\x05" + none + "A\x05\x10\x01" + none + "MTRC",
			[]*trace.Record{
				call(1, trace.OpAlloc, 5, 16, 0, 8), call(2, trace.OpMove, 5, 32, 16, 9), call(3, trace.OpMove, 5, 32, 32, 7),
				call(4, trace.OpFree, 5, 32, 0, 0), call(5, trace.OpAlloc, 5, 16, 0, 1), end,
			},
			mtrc.Stats{Calls: 5},
			"",
		},
		{
			"unknown blocks", "F\x08" + none + "R\x09\x10\x08" + none + "F\x09" + none + "F\x09" + none + "MTRC",
			[]*trace.Record{realloced, call(2, trace.OpFree, 9, 16, 0, 0), end},
			mtrc.Stats{Calls: 2, Unknown: 2, Adopted: 1},
			"offset 20: record F: block 8 is not live",
		},
		{
			"index twice", "A\x01\x10\x08" + none + "A\x01\x20\x09" + none + "F\x01" + none + "MTRC",
			[]*trace.Record{call(1, trace.OpAlloc, 1, 16, 0, 8), call(2, trace.OpAlloc, 1, 32, 0, 9), call(3, trace.OpFree, 1, 32, 0, 0), end},
			mtrc.Stats{Calls: 3, Twice: 1},
			"offset 28: record A: block 1 is live already",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, stats, err := load(t, little+tt.data, mtrc.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, payloads(got)); d != "" {
				t.Errorf("records (-want +got):\n%s", d)
			}
			tt.stats.Streams, tt.stats.Version = 1, "1.5.1, 64-bit"
			if stats != tt.stats {
				t.Errorf("%+v, want %+v", stats, tt.stats)
			}
			_, _, err = load(t, little+tt.data, mtrc.Options{Strict: true})
			if (err == nil) != (tt.strict == "") || err != nil && !strings.Contains(err.Error(), tt.strict) {
				t.Errorf("strictly: %v", err)
			}
		})
	}
}

// payloads returns the records without leftovers of earlier ones.
func payloads(all []*trace.Record) (clean []*trace.Record) {
	for _, r := range all {
		c := &trace.Record{Kind: r.Kind, Time: r.Time, PID: r.PID, TID: r.TID, CPU: r.CPU}
		switch r.Kind {
		case trace.KindHeader:
			c.Header = r.Header
		case trace.KindProcess:
			c.Process = r.Process
		case trace.KindResource:
			c.Resource = r.Resource
		case trace.KindHeapGrow:
			c.HeapGrow = r.HeapGrow
		case trace.KindCall:
			c.Call = r.Call
		}
		clean = append(clean, c)
	}
	return clean
}

// The reader sets every field of the record: nothing of an earlier record stays.
func TestReaderClearsRecords(t *testing.T) {
	data := contents(t, corpus+"/real/demo.trace")
	fresh, err := mtrc.NewReader(bytes.NewReader(data), mtrc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	used, err := mtrc.NewReader(bytes.NewReader(data), mtrc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		var want trace.Record
		err := fresh.ReadRecord(&want)
		got := trace.Record{
			Time: 1, PID: 2, TID: 3, CPU: 4,
			Header: trace.Header{Arch: "x"}, Process: trace.Process{Name: "x"}, Resource: trace.Resource{RefCount: true},
			Call: trace.Call{
				EntryTime: 1, Context: 2, Thread: 3, Caller: trace.Caller{File: "x"}, OldID: 4,
				Stack: trace.Stack{Frames: []uint64{1}, End: trace.StackComplete}, Args: []trace.Arg{{}},
			},
		}
		if again := used.ReadRecord(&got); !errors.Is(again, err) {
			t.Fatalf("%v and %v", err, again)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if d := cmp.Diff(payloads([]*trace.Record{&want}), payloads([]*trace.Record{&got})); d != "" {
			t.Fatal(d)
		}
	}
}

// Each stream is a process of its own. A stream without a trailer has no End.
func TestReaderStreams(t *testing.T) {
	const none = "\x00\x00\x00\x00"
	begin := func(h trace.Header) []*trace.Record {
		h.Format = "mtrc"
		return []*trace.Record{
			{Kind: trace.KindHeader, Header: h},
			{Kind: trace.KindProcess, Process: trace.Process{Depth: -1}},
			{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory", Desc: "memory allocation in bytes"}},
		}
	}
	other := "MTRC\x00\x00\x00\x01\x00\x00\x28\x3c" // version 1.3.0: events have no source
	first := begin(trace.Header{Version: "1.5.1", PointerSize: 8})
	second := begin(trace.Header{Version: "1.3.0", PointerSize: 4, BigEndian: true})
	a, f := call(1, trace.OpAlloc, 1, 16, 0, 8), call(2, trace.OpFree, 1, 16, 0, 0)
	end := &trace.Record{Kind: trace.KindEnd}
	for _, tt := range []struct {
		name, trailer string
		want          []*trace.Record
	}{
		{"whole", "MTRC", []*trace.Record{a, end}},
		{"cut", "", []*trace.Record{a}},
	} {
		data := little + "A\x01\x10\x08" + none + tt.trailer + other + "A\x01\x10\x08F\x01MTRC"
		r, err := mtrc.NewReader(strings.NewReader(data), mtrc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := trace.Load(r)
		if err != nil {
			t.Fatal(err)
		}
		var want []*trace.Record
		for _, part := range [][]*trace.Record{first, tt.want, second, {a, f, end}} {
			want = append(want, part...)
		}
		if d := cmp.Diff(want, payloads(all)); d != "" {
			t.Errorf("%s: (-want +got):\n%s", tt.name, d)
		}
		if s := r.Stats(); s.Version != "1.3.0, 32-bit, big-endian" || s.Streams != 2 || s.Unknown+s.Twice != 0 {
			t.Errorf("%s: %+v", tt.name, s)
		}
	}
}

// The End of a whole stream is delivered even if an error follows.
func TestReaderEndThenError(t *testing.T) {
	r, err := mtrc.NewReader(strings.NewReader(little+"MTRCxx"), mtrc.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	all, err := trace.Load(r)
	if !errors.Is(err, trace.ErrMalformed) || all[len(all)-1].Kind != trace.KindEnd {
		t.Errorf("%v, last record %v", err, all[len(all)-1].Kind)
	}
}
