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

// list returns records, and then err.
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

// readAll is trace.Load with a new record each time.
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

// sprtracePositions counts positions like sp-rtrace.
func sprtracePositions(r *trace.Record) int {
	switch {
	case r.Kind != trace.KindCall:
		return 0
	case r.Call.Op == trace.OpMove:
		return 2
	}
	return 1
}

// poor returns the parts of records that a format like sp-rtrace preserves.
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
			c.Process.Parent, c.Process.Started, c.Process.Path = 0, 0, ""
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

// must returns a function that fails the test on a warning.
func must(t testing.TB) func(error) {
	return func(err error) { t.Errorf("warning: %v", err) }
}

const start int64 = 1_700_000_000_123_456_789

func head() []*trace.Record {
	return []*trace.Record{
		{Kind: trace.KindHeader, Time: 5, PID: 7, Header: trace.Header{
			Format: "poor", Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic, WallTime: start, ClockTime: 5, Origin: "test",
		}},
		{Kind: trace.KindProcess, Time: 5, PID: 7, Process: trace.Process{Name: "prog", WallTime: start, Depth: 10, Parent: 3, Started: start - 5, Path: "/bin/prog"}},
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

// richTrace returns a trace with everything that side files store.
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
		&trace.Record{Kind: trace.KindWindow, Time: 18, PID: 7, Window: trace.Window{Weight: 12, Until: 19, Stretch: 12, Used: 1500, Added: 15, Doubt: 250000}},
		&trace.Record{Kind: trace.KindExec, Time: 18, PID: 7, TID: 9, Exec: trace.Exec{Name: "sh"}},
		&trace.Record{Kind: trace.KindExit, Time: 19, PID: 7, TID: 8},
		&trace.Record{Kind: trace.KindRSS, Time: 18, PID: 7, RSS: trace.RSS{Bytes: 1 << 40}},
		&trace.Record{Kind: trace.KindCost, Time: 18, PID: 7, Cost: trace.Cost{
			Used: 2000, Added: 20, Tracer: 7, Budget: 10000, Worst: 9000, Over: 0, Covered: 3000, Longest: 5,
		}},
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
{"at":0,"kind":"process","time":5,"pid":7,"name":"prog","wall_time":1700000000123456789,"depth":10,"parent":3,"started":1700000000123456784,"path":"/bin/prog"}
{"at":0,"kind":"thread","time":6,"pid":7,"tid":7,"name":"main"}
{"at":0,"kind":"module","time":6,"pid":7,"path":"/bin/prog","build_id":"abcd","inode":9,"major":8,"minor":1}
{"at":0,"kind":"mapping","time":6,"pid":7,"start":"0x1000","end":"0x2000","offset":"0x1000","base":"0x400","path":"/bin/prog"}
{"at":0,"kind":"module","time":6,"pid":7,"path":"/lib/x","fixed":true}
{"at":0,"kind":"mapping","time":6,"pid":7,"start":"0x5000","end":"0x6000","offset":"0x100","base":"0x5000","path":"/lib/x"}
{"at":6,"kind":"lost","time":17,"pid":7,"count":3,"reason":"ring full","since":15}
{"at":6,"kind":"unmapping","time":17,"pid":7,"start":"0x5000","end":"0x6000","path":"/lib/x"}
{"at":6,"kind":"module","time":17,"pid":7,"path":"/lib/y"}
{"at":6,"kind":"mapping","time":17,"pid":7,"start":"0x5100","end":"0x6000","offset":"0x2","base":"0x1","path":"/lib/y"}
{"at":8,"kind":"window","time":18,"pid":7,"weight":12,"until":19,"stretch":12,"used":1500,"added":15,"doubt":250000}
{"at":8,"kind":"exec","time":18,"pid":7,"tid":9,"name":"sh"}
{"at":8,"kind":"exit","time":19,"pid":7,"tid":8}
{"at":8,"kind":"rss","time":18,"pid":7,"bytes":1099511627776}
{"at":8,"kind":"cost","time":18,"pid":7,"used":2000,"added":20,"tracer":7,"budget":10000,"worst":9000,"covered":3000,"longest":5}
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

// A trace of many chunks: data are written to the disk in between, and are
// correct after every boundary.
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

// A format may represent some of the records itself, as text does in comments.
// The side file's records then replace them.
func TestNothingTwice(t *testing.T) {
	want := richTrace()
	var main []*trace.Record
	for _, r := range want {
		if p := poor([]*trace.Record{r}); len(p) > 0 {
			main = append(main, p...)
			continue
		}
		c := r.Clone()
		c.Time, c.PID, c.Lost.Since, c.Mapping.Offset = 0, 0, 0, 0
		c.Module.BuildID, c.Module.Inode = "", 0
		main = append(main, c)
	}
	got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(write(t, one, want...)), must(t)))
	if err != nil {
		t.Fatal(err)
	}
	want[len(want)-1].Time, want[len(want)-1].PID = 0, 0 // main's own end is kept
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
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

// jsonl has its own End; there must not be two.
func TestOneEnd(t *testing.T) {
	want := richTrace()
	main := append(poor(want), &trace.Record{Kind: trace.KindEnd, Time: 99})
	got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(write(t, one, want...)), must(t)))
	if err != nil || len(got) != len(want) || got[len(got)-1].Time != 99 {
		t.Errorf("%d records, want %d; %v", len(got), len(want), err)
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
