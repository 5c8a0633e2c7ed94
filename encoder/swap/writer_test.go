package swap_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	decoder "rtrace-bpf/decoder/swap"
	"rtrace-bpf/encoder/swap"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

func write(t *testing.T, o swap.Options, records ...trace.Record) ([]byte, *swap.Writer) {
	t.Helper()
	var out bytes.Buffer
	w, err := swap.New(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := w.WriteRecord(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), w
}

// dump returns the messages without offsets and sizes.
func dump(t *testing.T, data []byte) []string {
	t.Helper()
	var text bytes.Buffer
	if damaged, err := decoder.Dump(&text, bytes.NewReader(data), decoder.Options{Strict: true}); err != nil || damaged != 0 {
		t.Fatalf("%d damaged, %v", damaged, err)
	}
	var lines []string
	for line := range strings.Lines(text.String()) {
		fields := strings.Fields(line)
		lines = append(lines, strings.Join(fields[2:], " "))
	}
	return lines[1:]
}

const second = 1_000_000_000

// Every kind of record becomes the message that the format's page specifies, in the
// layout of the corpus.
func TestMessages(t *testing.T) {
	header := trace.Record{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockMonotonic, WallTime: 1_700_000_000 * second, ClockTime: 5 * second}}
	process := trace.Record{Kind: trace.KindProcess, Time: 5 * second, PID: 7, Process: trace.Process{Name: "/opt/demo/a-long-program-name --flag", Parent: 3, Started: 1_699_999_990*second + 5}}
	program := trace.Record{Kind: trace.KindMapping, Time: 5 * second, PID: 7, Mapping: trace.Mapping{Start: 0x2000, End: 0x3000, Offset: 0x1000, Base: 0x1000, Path: "/opt/demo/a-long-program-name"}}
	library := trace.Record{Kind: trace.KindMapping, Time: 5 * second, PID: 7, Mapping: trace.Mapping{Start: 0x7000, End: 0x8000, Path: "/lib/a.so"}}
	later := library
	later.Time = 6 * second
	later.Mapping.Start, later.Mapping.End, later.Mapping.Base, later.Mapping.Path = 0x9000, 0xa000, 0x8800, "/lib/b.so"
	unmap := later
	unmap.Kind = trace.KindUnmapping
	call := func(c trace.Call) trace.Record {
		return trace.Record{Kind: trace.KindCall, Time: 7 * second, PID: 7, TID: 8, Call: c}
	}
	stack := trace.Stack{Frames: []uint64{1, 2}, End: trace.StackComplete}
	records := []trace.Record{
		header, process,
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}},
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "file"}},
		{Kind: trace.KindThread, Time: 5 * second, PID: 7, TID: 7, Thread: trace.Thread{Name: "main"}},
		{Kind: trace.KindThread, Time: 5 * second, PID: 7, TID: 9, Thread: trace.Thread{Name: "other"}},
		program, library, later, unmap,
		call(trace.Call{Op: trace.OpAlloc, Function: "malloc", Resource: 1, ID: 16, Size: 5, Stack: stack}),
		call(trace.Call{Op: trace.OpMove, Function: "realloc", Resource: 1, ID: 32, OldID: 16, Size: 9, Stack: trace.Stack{Frames: []uint64{1}}}),
		call(trace.Call{Op: trace.OpAlloc, Function: "calloc", Resource: 1, ID: 48, Size: 12, Args: []trace.Arg{{Name: "n", Value: "3"}, {Name: "s", Value: "4"}}}),
		call(trace.Call{Op: trace.OpAlloc, Function: "my_alloc", Resource: 1, ID: 64, Size: 12}),
		{Kind: trace.KindLost, Lost: trace.Lost{Count: 4}},
		call(trace.Call{Op: trace.OpFree, Function: "free", Resource: 1, ID: 64}),
		call(trace.Call{Op: trace.OpAlloc, Function: "open", Resource: 2, ID: 3}),
		call(trace.Call{Op: trace.OpNone, Function: "free", Resource: 1, ID: 3}),
		{Kind: trace.KindComment, Comment: "text"},
		{Kind: trace.KindOpaque, Time: 8 * second, Opaque: trace.Opaque{Format: "swap", ID: 0x7fff, Data: []byte{1}}},
		{Kind: trace.KindOpaque, Time: 8 * second, Opaque: trace.Opaque{Format: "sprtrace", ID: 5, Data: []byte{1}}},
		{Kind: trace.KindExec, Time: 9 * second, PID: 7, Exec: trace.Exec{Name: "/bin/another-long-name"}},
		{Kind: trace.KindExit, Time: 9 * second, PID: 7, TID: 9},
		{Kind: trace.KindExit, Time: 9 * second, PID: 7, TID: 7, Exit: trace.Exit{Process: true}},
		{Kind: trace.KindEnd},
	}
	const common = " errno=0 call_type=1 "
	const reserved = " reserved1=0 reserved2=0 "
	probe := func(seq, api, args, result, caller, tail string) string {
		return "PROBE_MEMORY seq=" + seq + " time=1700000002.000000000 api_id=" + api + " pid=7 tid=8 args=[" + args + "] return=" + result +
			common + "caller=" + caller + reserved + tail
	}
	want := []string{
		`PROCESS_INFO seq=0 time=1700000000.000000000 pid=7 command_name="/opt/demo/a-long-program-name --flag" ppid=3 start_time=1699999990.000000005 ` +
			`low=0x1000 high=0x3000 binary_path="/opt/demo/a-long-program-name" libraries=[{low=0x7000 high=0x8000 path="/lib/a.so"}]`,
		`PROCESS_COMM seq=1 time=1700000000.000000000 pid=7 comm="main"`,
		`PROCESS_MAP seq=2 time=1700000001.000000000 pid=7 low=0x8800 high=0xa000 path="/lib/b.so"`,
		`PROCESS_UNMAP seq=3 time=1700000001.000000000 pid=7 low=0x8800 high=0xa000`,
		probe("4", "424", "x:5", "p:0x10", "0x1", "memory.size=5 memory.api_type=0 memory.address=0x10"),
		`STACK seq=5 time=1700000002.000000000 sequence=4 frames=[0x1 0x2]`,
		probe("6", "426", "p:0x10 x:9", "p:0x20", "0x1", "memory.size=9 memory.api_type=0 memory.address=0x20"),
		probe("7", "427", "x:3 x:4", "p:0x30", "0xbadbeef", "memory.size=12 memory.api_type=0 memory.address=0x30"),
		`API_NAME seq=8 time=1700000002.000000000 api_id=131072 name="my_alloc"`,
		probe("9", "131072", "x:12", "p:0x40", "0xbadbeef", "memory.size=12 memory.api_type=0 memory.address=0x40"),
		probe("14", "425", "p:0x40", "v", "0xbadbeef", "memory.size=0 memory.api_type=1 memory.address=0x40"),
		`ERROR seq=15 time=1700000002.000000000 message="text"`,
		`MESSAGE id=0x7fff seq=16 time=1700000003.000000000 data=01 # 0x7fff: its id is not supported`,
		`PROCESS_COMM seq=17 time=1700000004.000000000 pid=7 comm="/bin/another-long-name"`,
		`TERMINATE seq=18 time=1700000004.000000000 pid=7`,
	}
	text := func(data []byte) []string {
		var out bytes.Buffer
		if damaged, err := decoder.Dump(&out, bytes.NewReader(data), decoder.Options{}); err != nil || damaged != 0 {
			t.Fatalf("%d damaged, %v", damaged, err)
		}
		var lines []string
		for line := range strings.Lines(out.String()) {
			lines = append(lines, strings.Join(strings.Fields(line)[2:], " "))
		}
		return lines[1:]
	}
	stray := trace.Record{Kind: trace.KindOpaque, Opaque: trace.Opaque{Format: "swap", ID: wire.Stack, Data: make([]byte, 8)}}
	data, w := write(t, swap.Options{}, append(records, stray)...)
	want[12] = `MESSAGE id=0x7fff seq=16 time=1700000003.000000000 data=01`
	if d := cmp.Diff(want, text(data)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if s := w.Stats(); s.Foreign != 1 || s.Strays != 1 || len(s.Remarks()) != 2 {
		t.Errorf("%+v", s)
	}
	if apis := w.APIs(); apis[131072] != "my_alloc" || apis[424] != "malloc" || apis[107] != "open" || w.Start() != 1_700_000_000*second {
		t.Errorf("%v, start %d", apis, w.Start())
	}

	// The kernel's dialect has task names.
	data, _ = write(t, swap.Options{Dialect: swap.Kernel, NoStacks: true}, records...)
	got := strings.Join(text(data), "\n")
	for _, line := range []string{`command_name="main" ppid`, `comm="another-long-na"`} {
		if !strings.Contains(got, line) {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
	if strings.Contains(got, "STACK") || strings.Count(got, "PROCESS_COMM") != 1 {
		t.Errorf("%s", got)
	}

	// The other order of times.
	data, _ = write(t, swap.Options{Formula: true}, records...)
	if lines := text(data); !strings.Contains(lines[0], "formula=1700000000.000000000") || !strings.Contains(lines[0], "start_time=1699999990.000000005") {
		t.Errorf("%s", lines[0])
	}
}

// Times of all clocks become wall clock times.
func TestClocks(t *testing.T) {
	const day = 24 * 3600 * second
	call := func(now int64) trace.Record {
		return trace.Record{Kind: trace.KindCall, Time: now, Call: trace.Call{Op: trace.OpAlloc, ID: 16}}
	}
	for _, tt := range []struct {
		name   string
		header trace.Header
		start  int64
		times  []int64
		want   []int64
	}{
		{"wall", trace.Header{Clock: trace.ClockWall}, 0, []int64{1.7e18}, []int64{1.7e18}},
		{"unknown", trace.Header{}, 0, []int64{5, 6, 0}, []int64{1e18 + 5, 1e18 + 6, 1e18 + 6}},
		{"none", trace.Header{}, 0, []int64{0}, []int64{1e18}},
		{"start", trace.Header{Clock: trace.ClockMonotonic}, 1.7e18, []int64{5, 9}, []int64{1.7e18, 1.7e18 + 4}},
		{"midnight", trace.Header{Clock: trace.ClockDay}, 1.7e18, []int64{day - 1e9, 1e9}, []int64{1.7e18, 1.7e18 + 2e9}},
	} {
		records := []trace.Record{{Kind: trace.KindHeader, Header: tt.header}}
		if tt.start != 0 {
			records = append(records, trace.Record{Kind: trace.KindProcess, PID: 7, Process: trace.Process{WallTime: tt.start}})
		}
		for _, now := range tt.times {
			records = append(records, call(now))
		}
		data, _ := write(t, swap.Options{}, records...)
		r, err := decoder.NewReader(bytes.NewReader(data), decoder.Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		all, err := trace.Load(r)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, r := range all {
			if r.Kind == trace.KindCall {
				got = append(got, r.Time)
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestOptions(t *testing.T) {
	if _, err := swap.New(nil, swap.Options{}); err == nil {
		t.Error("no writer is accepted")
	}
	if _, err := swap.New(new(bytes.Buffer), swap.Options{Dialect: 9}); err == nil {
		t.Error("dialect 9 is accepted")
	}
	if _, err := swap.ParseDialect("klingon"); err == nil {
		t.Error("an unknown dialect is accepted")
	}
	for name, want := range map[string]swap.Dialect{"": swap.Document, "document": swap.Document, "kernel": swap.Kernel} {
		if got, err := swap.ParseDialect(name); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A text or list that is too long for a message is cut, and so is a loss that is too
// long for a gap.
func TestLimits(t *testing.T) {
	frames := make([]uint64, 10_000)
	data, w := write(t, swap.Options{},
		trace.Record{Kind: trace.KindComment, Comment: strings.Repeat("x", 100_000)},
		trace.Record{Kind: trace.KindLost, Lost: trace.Lost{Count: 1 << 40}},
		trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 16, Stack: trace.Stack{Frames: frames}}})
	if s := w.Stats(); s.Long != 2 || s.CutGaps != 1 {
		t.Errorf("%+v", s)
	}
	lines := dump(t, data)
	if len(lines) != 3 || len(lines[0]) > 32768+100 || !strings.Contains(lines[1], " seq=2147483648 ") {
		t.Errorf("%d lines", len(lines))
	}
}
