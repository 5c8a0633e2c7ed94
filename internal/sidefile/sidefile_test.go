package sidefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

// list is a reader of records, and then of err.
type list struct {
	records []*trace.Record
	err     error
}

func (l *list) ReadRecord(r *trace.Record) error {
	if len(l.records) == 0 {
		if l.err == nil {
			return io.EOF
		}
		return l.err
	}
	*r = *l.records[0].Clone()
	l.records = l.records[1:]
	return nil
}

// readAll is trace.Load with a fresh record each time.
func readAll(r trace.Reader) ([]*trace.Record, error) {
	var all []*trace.Record
	for {
		var rec trace.Record
		if err := r.ReadRecord(&rec); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, rec.Clone())
	}
}

func one(r *trace.Record) int {
	if r.Kind == trace.KindCall {
		return 1
	}
	return 0
}

// sprtracePositions is how sp-rtrace counts.
func sprtracePositions(r *trace.Record) int {
	switch {
	case r.Kind != trace.KindCall:
		return 0
	case r.Call.Op == trace.OpMove:
		return 2
	}
	return 1
}

// poor is what a format like sp-rtrace keeps of the records.
func poor(records []*trace.Record) []*trace.Record {
	var out []*trace.Record
	for _, r := range records {
		c := trace.Record{Kind: r.Kind}
		switch r.Kind {
		case trace.KindHeader:
			c.Header = trace.Header{Format: "poor", Arch: r.Header.Arch, Clock: r.Header.Clock}
		case trace.KindProcess:
			c.PID = r.PID
			c.Process = r.Process
			c.Process.WallTime -= c.Process.WallTime % 1000
		case trace.KindResource:
			c.Resource = r.Resource
		case trace.KindMapping:
			c.Mapping = trace.Mapping{Start: r.Mapping.Base, End: r.Mapping.End, Path: r.Mapping.Path}
		case trace.KindCall:
			c.Time = r.Time
			c.Call = r.Call
			c.Call.Size &= 0x7fffffff
			c.Call.Stack = trace.Stack{Frames: r.Call.Stack.Frames}
			c.Call.Stack.End = trace.StackUnknown
		default:
			continue
		}
		out = append(out, &c)
	}
	return out
}

func write(t testing.TB, positions func(*trace.Record) int, records ...*trace.Record) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.side")
	w, err := sidefile.NewWriter(path, positions)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// must fails the test when the side file is found fault with.
func must(t testing.TB) func(error) {
	return func(err error) { t.Errorf("warning: %v", err) }
}

const start int64 = 1_700_000_000_123_456_789

func head() []*trace.Record {
	return []*trace.Record{
		{Kind: trace.KindHeader, Time: 5, PID: 7, Header: trace.Header{
			Format: "poor", Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic, WallTime: start, ClockTime: 5, Origin: "test",
		}},
		{Kind: trace.KindProcess, Time: 5, PID: 7, Process: trace.Process{Name: "prog", WallTime: start, Depth: 10}},
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}},
		{Kind: trace.KindThread, Time: 6, PID: 7, TID: 7, Thread: trace.Thread{Name: "main"}},
		{Kind: trace.KindModule, Time: 6, PID: 7, Module: trace.Module{Path: "/bin/prog", BuildID: "abcd", Inode: 9, Major: 8, Minor: 1}},
		{Kind: trace.KindMapping, Time: 6, PID: 7, Mapping: trace.Mapping{Start: 0x1000, End: 0x2000, Offset: 0x1000, Base: 0x400, Path: "/bin/prog"}},
		{Kind: trace.KindModule, Time: 6, PID: 7, Module: trace.Module{Path: "/lib/x", Fixed: true}},
		{Kind: trace.KindMapping, Time: 6, PID: 7, Mapping: trace.Mapping{Start: 0x5000, End: 0x6000, Offset: 0x100, Base: 0x5000, Path: "/lib/x"}},
	}
}

func call(seq uint64, tid int32, op trace.Op, size uint64, s trace.Stack) *trace.Record {
	return &trace.Record{
		Kind: trace.KindCall, Time: int64(10 + seq), PID: 7, TID: tid,
		Call: trace.Call{Seq: seq, Op: op, Function: "f", Resource: 1, ID: seq << 4, Size: size, Stack: s},
	}
}

var (
	full     = trace.Stack{Frames: []uint64{1, 2}, End: trace.StackComplete}
	fp       = trace.Stack{Frames: []uint64{1}, End: trace.StackComplete, FramePointer: true}
	cut      = trace.Stack{Frames: []uint64{3, 4}, End: trace.StackTruncated}
	failed   = trace.Stack{Frames: []uint64{3}, End: trace.StackFailed, Reason: "no rule"}
	nothing  = trace.Stack{End: trace.StackFailed, Reason: "unmapped: stack"}
	noStack  = trace.Stack{}
	huge     = uint64(0x80000010)
	enormous = uint64(1) << 63
)

// richTrace has everything a side file is for.
func richTrace() []*trace.Record {
	return append(head(),
		call(1, 7, trace.OpAlloc, 100, full),
		call(2, 8, trace.OpAlloc, huge, fp),
		call(3, 8, trace.OpFree, 0, noStack),
		call(4, 8, trace.OpAlloc, 0x7fffffff, fp),
		call(5, 7, trace.OpAlloc, 7, nothing),
		call(6, 7, trace.OpFree, 0, noStack),
		&trace.Record{Kind: trace.KindLost, Time: 17, PID: 7, Lost: trace.Lost{Count: 3, Reason: "ring full", Since: 15}},
		&trace.Record{Kind: trace.KindUnmapping, Time: 17, PID: 7, Mapping: trace.Mapping{Start: 0x5000, End: 0x6000, Path: "/lib/x"}},
		&trace.Record{Kind: trace.KindModule, Time: 17, PID: 7, Module: trace.Module{Path: "/lib/y"}},
		&trace.Record{Kind: trace.KindMapping, Time: 17, PID: 7, Mapping: trace.Mapping{Start: 0x5100, End: 0x6000, Offset: 2, Base: 1, Path: "/lib/y"}},
		call(7, 9, trace.OpFree, 0, cut),
		call(8, 9, trace.OpAlloc, enormous, failed),
		&trace.Record{Kind: trace.KindExec, Time: 18, PID: 7, TID: 9, Exec: trace.Exec{Name: "sh"}},
		&trace.Record{Kind: trace.KindExit, Time: 19, PID: 7, TID: 8},
		&trace.Record{Kind: trace.KindExit, Time: 19, PID: 7, TID: 7, Exit: trace.Exit{Process: true}},
		&trace.Record{Kind: trace.KindEnd, Time: 20, PID: 7},
	)
}

func TestOverlayRestoresEverything(t *testing.T) {
	want := richTrace()
	side := write(t, one, want...)
	got, err := readAll(sidefile.Overlay(&list{records: poor(want)}, bytes.NewReader(side), must(t)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s\nside file:\n%s", diff, side)
	}
}

func TestBytes(t *testing.T) {
	got := string(write(t, one, richTrace()...))
	want := `{"format":"rtrace-side","version":1}
{"from":0,"to":8,"tid":[7,1,8,3,7,2,9,2],"stack":["complete",1,"complete+fp",3,"failed+bare:unmapped: stack",1,"absent",1,"truncated",1,"failed:no rule",1],"size":[1,2147483664,7,9223372036854775808]}
{"at":0,"kind":"header","time":5,"pid":7,"format":"poor","arch":"x86_64","pointer_size":8,"clock":"monotonic","wall_time":1700000000123456789,"clock_time":5,"origin":"test"}
{"at":0,"kind":"process","time":5,"pid":7,"name":"prog","wall_time":1700000000123456789,"depth":10}
{"at":0,"kind":"thread","time":6,"pid":7,"tid":7,"name":"main"}
{"at":0,"kind":"module","time":6,"pid":7,"path":"/bin/prog","build_id":"abcd","inode":9,"major":8,"minor":1}
{"at":0,"kind":"mapping","time":6,"pid":7,"start":"0x1000","end":"0x2000","offset":"0x1000","base":"0x400","path":"/bin/prog"}
{"at":0,"kind":"module","time":6,"pid":7,"path":"/lib/x","fixed":true}
{"at":0,"kind":"mapping","time":6,"pid":7,"start":"0x5000","end":"0x6000","offset":"0x100","base":"0x5000","path":"/lib/x"}
{"at":6,"kind":"lost","time":17,"pid":7,"count":3,"reason":"ring full","since":15}
{"at":6,"kind":"unmapping","time":17,"pid":7,"start":"0x5000","end":"0x6000","path":"/lib/x"}
{"at":6,"kind":"module","time":17,"pid":7,"path":"/lib/y"}
{"at":6,"kind":"mapping","time":17,"pid":7,"start":"0x5100","end":"0x6000","offset":"0x2","base":"0x1","path":"/lib/y"}
{"at":8,"kind":"exec","time":18,"pid":7,"tid":9,"name":"sh"}
{"at":8,"kind":"exit","time":19,"pid":7,"tid":8}
{"at":8,"kind":"exit","time":19,"pid":7,"tid":7,"process":true}
{"at":8,"kind":"end","time":20,"pid":7}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// In sp-rtrace a move is two calls; the size belongs to the second.
func TestMoveTakesTwoPositions(t *testing.T) {
	records := append(head(),
		call(1, 7, trace.OpAlloc, 1, full),
		call(2, 8, trace.OpMove, huge, fp),
		call(3, 9, trace.OpAlloc, enormous, cut),
	)
	main := append(poor(head()),
		call(1, 0, trace.OpAlloc, 1, trace.Stack{Frames: full.Frames}),
		call(2, 0, trace.OpFree, 0, noStack),
		call(3, 0, trace.OpAlloc, 0x7fffffff, trace.Stack{Frames: fp.Frames}),
		call(4, 0, trace.OpAlloc, 0x7fffffff, trace.Stack{Frames: cut.Frames}),
	)
	want := append(head(),
		call(1, 7, trace.OpAlloc, 1, full),
		call(2, 8, trace.OpFree, 0, noStack),
		call(3, 8, trace.OpAlloc, huge, fp),
		call(4, 9, trace.OpAlloc, enormous, cut),
	)
	got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(write(t, sprtracePositions, records...)), must(t)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A trace of many chunks: what is gathered must go to the disk on the way, and
// what is read must be right behind every border.
func TestManyChunks(t *testing.T) {
	want := head()
	for i := range uint64(60_000) {
		s := full
		if i%3 == 0 {
			s = fp
		}
		size := i
		if i%1000 == 0 {
			size += 1 << 40
		}
		want = append(want, call(i+1, int32(i%5/3+1000), trace.OpAlloc, size, s))
		if i%500 == 0 {
			want = append(want, &trace.Record{Kind: trace.KindLost, Time: int64(i), Lost: trace.Lost{Count: i}})
		}
	}
	want = append(want, &trace.Record{Kind: trace.KindEnd})
	side := write(t, one, want...)
	if chunks := bytes.Count(side, []byte(`{"from"`)); chunks < 8 {
		t.Errorf("%d chunks", chunks)
	}
	got, err := readAll(sidefile.Overlay(&list{records: poor(want)}, bytes.NewReader(side), must(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Kind != w.Kind || g.TID != w.TID || g.Call.Size != w.Call.Size || g.Lost != w.Lost ||
			g.Call.Stack.End != w.Call.Stack.End || g.Call.Stack.FramePointer != w.Call.Stack.FramePointer {
			t.Fatalf("record %d is %+v, want %+v", i, g, w)
		}
	}
}

// The clock of sp-rtrace: milliseconds of the day.
func TestTimesOnTheClockOfTheDay(t *testing.T) {
	const day = 24 * 3600 * int64(1e9)
	records := head()
	records[0].Header.ClockTime = 3*day + 1_234_567
	records = append(records, &trace.Record{Kind: trace.KindLost, Time: 2*day + 5_999_999, Lost: trace.Lost{Count: 1, Since: day + 1}})
	side := write(t, one, records...)
	main := poor(head())
	main[0].Header.Clock = trace.ClockDay
	got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(side), must(t)))
	if err != nil {
		t.Fatal(err)
	}
	if h := got[0].Header; h.ClockTime != 1_000_000 || h.WallTime != start {
		t.Errorf("header %+v", h)
	}
	if r := got[len(got)-1]; r.Kind != trace.KindLost || r.Time != 5_000_000 || r.Lost.Since != 0 {
		t.Errorf("lost at %d since %d", r.Time, r.Lost.Since)
	}
}

func TestRefused(t *testing.T) {
	good := write(t, one, richTrace()...)
	for _, tt := range []struct {
		name   string
		side   []byte
		change func(process, header *trace.Record)
		warn   string
	}{
		{"other pid", good, func(p, _ *trace.Record) { p.PID = 8 }, "about process 7 and the trace about 8"},
		{"other start", good, func(p, _ *trace.Record) { p.Process.WallTime += 2e9 }, "began at another time"},
		{"filtered", good, func(_, h *trace.Record) { h.Header.Filter = "resolve|leaks" }, "was filtered"},
		{"empty", nil, nil, "it is empty"},
		{"other file", []byte("hello\n"), nil, "instead of '{'"},
		{"jsonl", []byte(`{"format":"rtrace-jsonl","version":1}` + "\n"), nil, "does not say"},
		{"later version", []byte(`{"format":"rtrace-side","version":2}` + "\n"), nil, "version 2 is not supported"},
	} {
		main := poor(richTrace())
		if tt.change != nil {
			tt.change(main[1], main[0])
		}
		var warnings []string
		got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(tt.side), func(err error) { warnings = append(warnings, err.Error()) }))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(main, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: the trace was changed: (-want +got)\n%s", tt.name, diff)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], "is not used") || !strings.Contains(warnings[0], tt.warn) {
			t.Errorf("%s: warnings %q, want one with %q", tt.name, warnings, tt.warn)
		}
	}
}

func TestStartAsFormatsKeepIt(t *testing.T) {
	side := write(t, one, richTrace()...)
	for name, wall := range map[string]int64{
		"whole": start, "micro": start - start%1_000, "milli": start - start%1_000_000, "second": start - start%1_000_000_000,
		"zone": start - start%1_000_000_000 + 3600*1_000_000_000, "unknown": 0,
	} {
		main := poor(richTrace())
		main[1].Process.WallTime = wall
		got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(side), must(t)))
		if err != nil || len(got) != len(richTrace()) || got[1].Process.WallTime != start {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
	}
}

// However a side file ends, the trace itself is whole.
func TestCutAndDamaged(t *testing.T) {
	side := write(t, one, richTrace()...)
	main := poor(richTrace())
	seqs := func(records []*trace.Record) (out []uint64) {
		for _, r := range records {
			if r.Kind == trace.KindCall {
				out = append(out, r.Call.Seq)
			}
		}
		return out
	}
	for n := range side {
		for _, data := range [][]byte{side[:n], append(append(bytes.Clone(side[:n]), '#'), side[n+1:]...)} {
			got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(data), nil))
			if err != nil {
				t.Fatalf("%d: %v", n, err)
			}
			if diff := cmp.Diff(seqs(main), seqs(got)); diff != "" {
				t.Fatalf("%d: %s", n, diff)
			}
		}
	}
}

func TestCutTrace(t *testing.T) {
	want := richTrace()
	side := write(t, one, want...)
	broken := &trace.SyntaxError{Format: "poor", Offset: 3, Err: trace.ErrTruncated}
	main := poor(want)
	for n := range main {
		r := sidefile.Overlay(&list{main[:n], broken}, bytes.NewReader(side), must(t))
		got, err := readAll(r)
		if !errors.Is(err, trace.ErrTruncated) {
			t.Fatalf("cut after %d: %v", n, err)
		}
		if err2 := r.ReadRecord(new(trace.Record)); err2 != err {
			t.Errorf("cut after %d: then %v", n, err2)
		}
		if len(got) > 0 && got[len(got)-1].Kind == trace.KindEnd && n < len(main) {
			t.Errorf("cut after %d: it has an end", n)
		}
	}
}

// jsonl has its own End; there must not be two.
func TestOneEnd(t *testing.T) {
	want := richTrace()
	main := append(poor(want), &trace.Record{Kind: trace.KindEnd, Time: 99})
	got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(write(t, one, want...)), must(t)))
	if err != nil || len(got) != len(want) || got[len(got)-1].Time != 99 {
		t.Errorf("%d records, want %d; %v", len(got), len(want), err)
	}
}

func TestOutOfOrder(t *testing.T) {
	const first = `{"format":"rtrace-side","version":1}` + "\n"
	for _, tt := range []struct{ side, warn string }{
		{`{"from":0,"to":4}` + "\n" + `{"from":3,"to":5}` + "\n", "out of order"},
		{`{"from":4,"to":3}` + "\n", "out of order"},
		{`{"at":4,"kind":"thread"}` + "\n" + `{"at":3,"kind":"thread"}` + "\n", "out of order"},
		{`{"at":4,"kind":"call"}` + "\n", "holds no call"},
		{`{"at":4,"kind":"nobody"}` + "\n", "not supported"},
		{`{"from":0,"to":4,"tid":[1]}` + "\n", "without a second"},
		{`{"from":0,"to":4,"stack":["good",1]}` + "\n", "unknown quality"},
		{`{"from":0,"to":4,"tid":[1,2,3,4]` + "\n", "line ends inside a value"},
	} {
		var warnings []string
		main := poor(richTrace())
		got, err := readAll(sidefile.Overlay(&list{records: main}, strings.NewReader(first+tt.side), func(err error) { warnings = append(warnings, err.Error()) }))
		if err != nil || len(got) < len(main) {
			t.Errorf("%s: %d records, %v", tt.side, len(got), err)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], tt.warn) {
			t.Errorf("%s: warnings %q, want %q", tt.side, warnings, tt.warn)
		}
	}
}

func TestWriterFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.side")
	names := func() string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return strings.Join(all, " ")
	}
	open := func() *sidefile.Writer {
		t.Helper()
		w, err := sidefile.NewWriter(path, one)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}

	w := open()
	if _, err := os.Stat(path); err == nil {
		t.Error("the file has its name before it is complete")
	}
	if err := w.Discard(); err != nil || names() != "" {
		t.Errorf("after Discard: %v, %q", err, names())
	}
	if err := w.WriteRecord(richTrace()[0]); err == nil {
		t.Error("written after Discard")
	}

	w = open()
	if err := w.WriteRecord(&trace.Record{Kind: trace.KindEnd}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || names() != "out.side" {
		t.Errorf("after Close: %v, %q", err, names())
	}
	if err := errors.Join(w.Close(), w.Discard()); err != nil || names() != "out.side" {
		t.Errorf("after a second Close: %v, %q", err, names())
	}
	if w = open(); w.Close() != nil {
		t.Error("an earlier side file is not replaced")
	}
	if err := os.WriteFile(path, []byte("a letter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sidefile.NewWriter(path, one); !errors.Is(err, os.ErrExist) {
		t.Errorf("on another file: %v", err)
	}
	if _, err := sidefile.NewWriter(filepath.Join(dir, "no", "such"), one); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a missing folder: %v", err)
	}
	if names() != "out.side" {
		t.Errorf("left behind: %q", names())
	}
}

// Beyond a bound, what the writer holds must not grow with the trace.
func TestWriterMemory(t *testing.T) {
	w, err := sidefile.NewWriter(filepath.Join(t.TempDir(), "x"), one)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	rec := call(1, 1, trace.OpAlloc, 5, full)
	write := func() {
		rec.TID ^= 3
		rec.Call.Size ^= 1 << 33
		if err := w.WriteRecord(rec); err != nil {
			t.Fatal(err)
		}
	}
	for range 200_000 {
		write()
	}
	if n := testing.AllocsPerRun(50_000, write); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}

func FuzzOverlay(f *testing.F) {
	main := poor(richTrace())
	f.Add(write(f, one, richTrace()...))
	f.Add(write(f, sprtracePositions, richTrace()...))
	f.Add([]byte(`{"format":"rtrace-side","version":1}` + "\n" + `{"from":1,"to":18446744073709551615,"tid":[4,0,5,18446744073709551615],"stack":["failed+bare:",1]}`))
	f.Fuzz(func(t *testing.T, side []byte) {
		got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(side), nil))
		if err != nil {
			t.Fatal(err)
		}
		// What main has must be there, in its order.
		i := 0
		for _, r := range got {
			for i < len(main) && main[i].Kind != trace.KindCall {
				i++
			}
			if r.Kind == trace.KindCall {
				if i == len(main) || r.Call.ID != main[i].Call.ID || r.Time != main[i].Time {
					t.Fatalf("call %d is %+v", i, r)
				}
				i++
			}
		}
		if i != len(main) {
			t.Fatalf("%d of %d records", i, len(main))
		}
	})
}

func BenchmarkWriteCall(b *testing.B) {
	w, err := sidefile.NewWriter(filepath.Join(b.TempDir(), "x"), one)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	alloc, free := call(1, 1, trace.OpAlloc, 5, full), call(1, 1, trace.OpFree, 0, noStack)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r := alloc
		if i%2 == 0 {
			r = free
		}
		r.TID = int32(i >> 3 & 1)
		if err := w.WriteRecord(r); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleOverlay() {
	main := &list{records: []*trace.Record{{Kind: trace.KindCall}}}
	side := strings.NewReader(`{"format":"rtrace-side","version":1}
{"from":0,"to":1,"tid":[42,1]}
{"at":1,"kind":"end"}
`)
	var r trace.Record
	for o := sidefile.Overlay(main, side, nil); o.ReadRecord(&r) == nil; {
		fmt.Println(r.Kind, r.TID)
	}
	// Output:
	// call 42
	// end 0
}
