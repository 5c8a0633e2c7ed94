package sptext

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

const ms = int64(time.Millisecond)

func header() *trace.Record {
	return &trace.Record{Kind: trace.KindHeader, Header: trace.Header{
		Arch: "x86_64", PointerSize: 8, Clock: trace.ClockDay, Filter: "leaks|resolve", Origin: "rtrace-bpf 1.0",
	}}
}

func process() *trace.Record {
	return &trace.Record{Kind: trace.KindProcess, PID: 4711, Process: trace.Process{
		Name: "/usr/bin/demo", WallTime: time.Date(2026, 3, 7, 8, 9, 5, 0, time.UTC).UnixNano(), Depth: 10,
	}}
}

func call(c trace.Call) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Time: 2542936 * ms, Call: c}
}

func resource(id uint32, typ, desc string, refs bool) *trace.Record {
	return &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: id, Type: typ, Desc: desc, RefCount: refs}}
}

func comment(s string) *trace.Record { return &trace.Record{Kind: trace.KindComment, Comment: s} }

const headerLine = "version=2.0, arch=x86_64, timestamp=2026.3.7 08:09:05, process=/usr/bin/demo, pid=4711, " +
	"filter=leaks|resolve, backtrace depth=10, origin=rtrace-bpf 1.0, \n"

// write returns the text of the records after the usual header.
func write(t *testing.T, opts Options, records ...*trace.Record) string {
	t.Helper()
	var b bytes.Buffer
	opts.Location = time.UTC
	w, err := New(&b, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range append([]*trace.Record{header(), process()}, records...) {
		if err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(b.String(), headerLine)
	if !ok {
		t.Fatalf("header line: %q", b.String())
	}
	return text
}

func TestRecords(t *testing.T) {
	frames := trace.Stack{Frames: []uint64{0x401000, 0x7f0000000001}, End: trace.StackComplete}
	named := trace.Stack{Frames: []uint64{1, 2, 3}, Names: []string{"main() at a.c:7", "", "from /lib/c.so"}}
	memory := resource(1, "memory", "memory allocation in bytes", false)
	for _, tt := range []struct {
		name    string
		opts    Options
		records []*trace.Record
		want    string
	}{
		{"allocation with stack", Options{}, []*trace.Record{
			call(trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 0x55c9a22662a0, Size: 100, Stack: frames}),
		}, "1. [00:42:22.936] malloc(100) = 0x55c9a22662a0\n\t0x401000\n\t0x7f0000000001\n\n"},
		{"free", Options{}, []*trace.Record{
			call(trace.Call{Op: trace.OpFree, Function: "free", ID: 0x10}),
		}, "1. [00:42:22.936] free(0x10)\n\n"},
		{"undefined call type", Options{}, []*trace.Record{
			call(trace.Call{Op: trace.OpNone, Function: "f", ID: 0x10, Size: 3}),
		}, "1. [00:42:22.936] f(0x10)\n\n"},
		{"no time, context", Options{}, []*trace.Record{
			{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 1, Size: 2, Context: 0x1f}},
		}, "1. @1f malloc(2) = 0x1\n\n"},
		{"names", Options{}, []*trace.Record{
			call(trace.Call{Op: trace.OpFree, Function: "free", ID: 1, Stack: named}),
		}, "1. [00:42:22.936] free(0x1)\n\t0x1 main() at a.c:7\n\t0x2\n\t0x3 from /lib/c.so\n\n"},
		{"arguments", Options{}, []*trace.Record{
			call(trace.Call{Op: trace.OpAlloc, Function: "open", ID: 3, Size: 1, Stack: frames, Args: []trace.Arg{
				{Name: "path", Value: "/tmp/a b"}, {Name: "mode", Value: ""},
			}}),
		}, "1. [00:42:22.936] open(1) = 0x3\n\t$path = /tmp/a\\x20b\n\t$mode = \n\t0x401000\n\t0x7f0000000001\n\n"},
		{"move", Options{}, []*trace.Record{
			call(trace.Call{Op: trace.OpMove, Function: "realloc", OldID: 16, ID: 32, Size: 9, EntryTime: 2542930 * ms, Stack: frames}),
			call(trace.Call{Op: trace.OpFree, Function: "free", ID: 32}),
		}, "1. [00:42:22.930] realloc(0x10)\n\n2. [00:42:22.936] realloc(9) = 0x20\n\t0x401000\n\t0x7f0000000001\n\n" +
			"3. [00:42:22.936] free(0x20)\n\n"},
		{"move from nothing", Options{}, []*trace.Record{
			call(trace.Call{Op: trace.OpMove, Function: "realloc", ID: 32, Size: 9}),
		}, "1. [00:42:22.936] realloc(0x0)\n\n2. [00:42:22.936] realloc(9) = 0x20\n\n"},
		{"index kept", Options{KeepSeq: true}, []*trace.Record{
			call(trace.Call{Seq: 0, Op: trace.OpFree, Function: "free", ID: 1}),
			call(trace.Call{Seq: 77, Op: trace.OpFree, Function: "free", ID: 1}),
		}, "0. [00:42:22.936] free(0x1)\n\n77. [00:42:22.936] free(0x1)\n\n"},
		{"one resource", Options{}, []*trace.Record{
			memory, call(trace.Call{Op: trace.OpFree, Function: "free", ID: 1, Resource: 1}),
		}, "<1> : memory (memory allocation in bytes)\n1. [00:42:22.936] free(0x1)\n\n"},
		{"types from the second resource on", Options{}, []*trace.Record{
			memory,
			call(trace.Call{Op: trace.OpFree, Function: "free", ID: 1, Resource: 1}),
			resource(9, "segment", "shared memory", true),
			call(trace.Call{Op: trace.OpFree, Function: "free", ID: 1, Resource: 1}),
			call(trace.Call{Op: trace.OpAlloc, Function: "shmget", ID: 1, Resource: 9}),
			call(trace.Call{Op: trace.OpAlloc, Function: "x", ID: 1, Resource: 5}),
		}, "<1> : memory (memory allocation in bytes)\n1. [00:42:22.936] free(0x1)\n\n" +
			"<100> : segment (shared memory) [refcount]\n2. [00:42:22.936] free<memory>(0x1)\n\n" +
			"3. [00:42:22.936] shmget<segment>(0) = 0x1\n\n4. [00:42:22.936] x(0) = 0x1\n\n"},
		{"the same resource again", Options{}, []*trace.Record{
			memory, memory, call(trace.Call{Op: trace.OpFree, Function: "free", ID: 1, Resource: 1}),
		}, "<1> : memory (memory allocation in bytes)\n1. [00:42:22.936] free(0x1)\n\n"},
		{"the same resource again, legacy", Options{Legacy: true}, []*trace.Record{
			memory, memory, call(trace.Call{Op: trace.OpFree, Function: "free", ID: 1, Resource: 1}),
		}, "<1> : memory (memory allocation in bytes)\n<1> : memory (memory allocation in bytes)\n1. [00:42:22.936] free<memory>(0x1)\n"},
		{"resource bits", Options{}, []*trace.Record{
			resource(32, "a", "b)c", false), resource(0, "zero", "", false),
		}, "<80000000> : a (b\\x29c)\n<80000000> : zero ()\n"},
		{"sizes", Options{}, []*trace.Record{
			call(trace.Call{Op: trace.OpAlloc, Function: "m", ID: ^uint64(0), Size: 0x80000010}),
		}, "1. [00:42:22.936] m(2147483664) = 0xffffffffffffffff\n\n"},
		{"sizes and stacks, legacy", Options{Legacy: true}, []*trace.Record{
			call(trace.Call{Op: trace.OpAlloc, Function: "m", ID: 1, Size: 0x80000010}),
			call(trace.Call{Op: trace.OpFree, Function: "f", ID: 1, Stack: trace.Stack{End: trace.StackUnknown}}),
		}, "1. [00:42:22.936] m(-2147483632) = 0x1\n2. [00:42:22.936] f(0x1)\n\n"},
		{"hours go on", Options{}, []*trace.Record{
			{Kind: trace.KindCall, Time: 100 * 3600000 * ms, Call: trace.Call{Op: trace.OpFree, Function: "f"}},
			{Kind: trace.KindCall, Time: 1, Call: trace.Call{Op: trace.OpFree, Function: "f"}},
		}, "1. [100:00:00.000] f(0x0)\n\n2. [00:00:00.001] f(0x0)\n\n"},
		{"mappings", Options{}, []*trace.Record{
			{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: 0x2000, End: 0x3000, Base: 0x1000, Path: "/a b"}},
			{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: 0x2000, End: 0x3000, Path: "[vdso]"}},
			{Kind: trace.KindUnmapping, Mapping: trace.Mapping{Start: 0x2000, End: 0x3000, Path: "[vdso]"}},
		}, ": /a\\x20b => 0x1000-0x3000\n: [vdso] => 0x2000-0x3000\n## unmapped: [vdso] => 0x2000-0x3000\n"},
		{"registries", Options{}, []*trace.Record{
			{Kind: trace.KindAttachment, Attachment: trace.Attachment{Name: "maps", Path: "1-maps-0"}},
			{Kind: trace.KindTracerModule, TracerModule: trace.TracerModule{ID: 16, Major: 1, Minor: 2, Name: "file"}},
			{Kind: trace.KindContext, Context: trace.Context{ID: 16, Name: "gui update"}},
		}, "& maps : 1-maps-0\n## tracing module: [10] file (1.2)\n@ 10 : gui update\n"},
		{"events as comments", Options{}, []*trace.Record{
			{Kind: trace.KindLost, Lost: trace.Lost{Count: 12, Reason: "ring full"}},
			{Kind: trace.KindExec, Exec: trace.Exec{Name: "sh"}},
			{Kind: trace.KindProcess, PID: 4712, Process: trace.Process{Name: "child"}},
		}, "## lost: 12 events (ring full)\n## exec: sh\n## further process: 4712 child\n"},
		{"comments", Options{}, []*trace.Record{
			comment("## kept"), comment("#kept"), comment("# temporary"), comment("#"), comment(""),
			comment("1. free(0x1)"), comment("a\nb"), comment("\tc"),
		}, "## kept\n#kept\n## temporary\n##\n## \n## 1. free(0x1)\n## a b\n## \tc\n"},
		{"comments, legacy", Options{Legacy: true}, []*trace.Record{
			comment("Process 7"), comment("# x"),
		}, "Process 7\n# x\n"},
		{"names that could be misread", Options{}, []*trace.Record{
			call(trace.Call{Op: trace.OpFree, Function: "@1 x", ID: 1}),
			call(trace.Call{Op: trace.OpFree, Function: "[1:2:3.4] x", ID: 1}),
			call(trace.Call{Op: trace.OpFree, Function: "f<int>", ID: 1}),
			call(trace.Call{Op: trace.OpFree, Function: `a\x41\n`, ID: 1}),
			call(trace.Call{Op: trace.OpFree, Function: "operator new[](unsigned long)", ID: 1}),
			call(trace.Call{Op: trace.OpFree, ID: 1}),
		}, "1. [00:42:22.936] \\x401 x(0x1)\n\n2. [00:42:22.936] \\x5b1:2:3.4] x(0x1)\n\n3. [00:42:22.936] f<int\\x3e(0x1)\n\n" +
			"4. [00:42:22.936] a\\x5cx41\\n(0x1)\n\n5. [00:42:22.936] operator new[](unsigned long)(0x1)\n\n6. [00:42:22.936] (0x1)\n\n"},
		{"nothing quoted, legacy", Options{Legacy: true}, []*trace.Record{
			call(trace.Call{Op: trace.OpFree, Function: `f<int>\x41`, ID: 1, Args: []trace.Arg{{Name: "a", Value: "b c"}}}),
		}, "1. [00:42:22.936] f<int>\\x41(0x1)\n\t$a = b c\n"},
		{"without text", Options{}, []*trace.Record{
			{Kind: trace.KindThread}, {Kind: trace.KindModule}, {Kind: trace.KindExit}, {Kind: trace.KindOpaque}, {Kind: trace.KindEnd},
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, write(t, tt.opts, tt.records...)); d != "" {
				t.Errorf("text (-want +got):\n%s", d)
			}
		})
	}
}

func TestHeapBlock(t *testing.T) {
	heap := &trace.Record{Kind: trace.KindHeapInfo, HeapInfo: trace.HeapInfo{
		Bottom: 0x1000, Top: 0x2000, Arena: 1, OrdBlks: 2, SmBlks: 3, HBlks: 4, HBlkHd: 5,
		UsmBlks: 6, FsmBlks: 7, UordBlks: 8, FordBlks: 9, KeepCost: 0xffffffff,
	}}
	want := `## heap status information:
##   heap bottom 0x1000
##   heap top 0x2000
##   lowest block 0x1010
##   highest block 0x1ff0
##   non-mapped space allocated from system 1
##   count of free chunks 2
##   count of freed fastbin blocks 3
##   count of mapped regions 4
##   space in mapped regions 5
##   maximum total allocated space 6
##   space available in freed fastbin blocks 7
##   total allocated space, both normal and mmapped 8
##   total free space 9
##   space ideally releasable via malloc_trim 4294967295
`
	alloc := func(id uint64) *trace.Record { return call(trace.Call{Op: trace.OpAlloc, Function: "m", ID: id}) }
	got := write(t, Options{}, alloc(0x1ff0), alloc(0x1010), call(trace.Call{Op: trace.OpFree, ID: 0x9000}), heap)
	if i := strings.Index(got, "## heap"); i < 0 || got[i:] != want {
		t.Errorf("text (-want +got):\n%s", cmp.Diff(want, got))
	}

	var b bytes.Buffer
	w, err := New(&b, Options{Legacy: true})
	if err != nil {
		t.Fatal(err)
	}
	w.SetHeapBounds(0x11, 0x22)
	if err := errors.Join(w.WriteRecord(header()), w.WriteRecord(process()), w.WriteRecord(heap), w.Close()); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"lowest block 0x11\n", "highest block 0x22\n", "malloc_trim -1\n"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no %q in\n%s", line, b.String())
		}
	}
}

func TestNoAllocationsInHeapBlock(t *testing.T) {
	for size, want := range map[int]string{4: "0xffffffff\n", 8: "0xffffffffffffffff\n"} {
		var b bytes.Buffer
		w, _ := New(&b, Options{})
		h := header()
		h.Header.PointerSize = size
		if err := errors.Join(w.WriteRecord(h), w.WriteRecord(&trace.Record{Kind: trace.KindHeapInfo}), w.Close()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "lowest block "+want) {
			t.Errorf("%d-byte pointers: no lowest block %q in\n%s", size, want, b.String())
		}
	}
}

func TestHeader(t *testing.T) {
	bare := &trace.Record{Kind: trace.KindHeader}
	for _, tt := range []struct {
		name    string
		opts    Options
		records []*trace.Record
		want    string
	}{
		{"nothing at all", Options{}, nil, "version=2.0, \n"},
		{"nothing at all, legacy", Options{Legacy: true}, nil, "version=2.0, timestamp=1970.1.1 00:00:00, \n"},
		{
			"no process",
			Options{},
			[]*trace.Record{header(), comment("#x")},
			"version=2.0, arch=x86_64, filter=leaks|resolve, origin=rtrace-bpf 1.0, \n#x\n",
		},
		{
			"depth unknown",
			Options{},
			[]*trace.Record{bare, {Kind: trace.KindProcess, PID: 3, Process: trace.Process{Depth: -1}}},
			"version=2.0, pid=3, \n",
		},
		{
			"quoted",
			Options{},
			[]*trace.Record{bare, {Kind: trace.KindProcess, PID: 3, Process: trace.Process{Name: "a,b c\n"}}},
			"version=2.0, process=a\\x2cb c\\x0a, pid=3, backtrace depth=0, \n",
		},
		{
			"not quoted, legacy",
			Options{Legacy: true},
			[]*trace.Record{bare, {Kind: trace.KindProcess, PID: -3, Process: trace.Process{Name: "a,b"}}},
			"version=2.0, timestamp=1970.1.1 00:00:00, process=a,b, pid=-3, backtrace depth=0, \n",
		},
		{
			"time given",
			Options{Timestamp: "27.5.19 01:02:03"},
			[]*trace.Record{process()},
			"version=2.0, timestamp=27.5.19 01:02:03, process=/usr/bin/demo, pid=4711, backtrace depth=10, \n",
		},
		{
			"time of the header",
			Options{},
			[]*trace.Record{{Kind: trace.KindHeader, Header: trace.Header{WallTime: 1e9}}},
			"version=2.0, timestamp=1970.1.1 00:00:01, \n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			tt.opts.Location = time.UTC
			w, err := New(&b, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range tt.records {
				if err := w.WriteRecord(r); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if b.String() != tt.want {
				t.Errorf("got %q, want %q", b.String(), tt.want)
			}
		})
	}
}

func TestMonotonicClock(t *testing.T) {
	h := header()
	h.Header.Clock = trace.ClockMonotonic
	day := 24 * 3600000 * ms
	got := write(t, Options{}, h,
		&trace.Record{Kind: trace.KindCall, Time: 3*day + 5*ms, Call: trace.Call{Op: trace.OpFree, Function: "f"}},
		&trace.Record{Kind: trace.KindCall, Time: 3 * day, Call: trace.Call{Op: trace.OpFree, Function: "f"}})
	// Zero would mean no time.
	if want := "1. [00:00:00.005] f(0x0)\n\n2. [00:00:00.001] f(0x0)\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
