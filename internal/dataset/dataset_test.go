package dataset

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// plain is a Namer that knows nothing but addresses.
type plain struct{ framer sites.Framer }

func (plain) Observe(*trace.Record) {}

func (p *plain) Frames(dst []NamedFrame, r *trace.Record) []NamedFrame {
	for _, f := range p.framer.Append(nil, r.PID, &r.Call.Stack, &r.Call.Caller, 0) {
		dst = append(dst, NamedFrame{Frame: f})
	}
	return dst
}

func (p *plain) Site(r *trace.Record) (sites.Frame, string) {
	return p.framer.Append(nil, r.PID, &r.Call.Stack, &r.Call.Caller, 1)[0], ""
}

// began is the time of the first call: 2026-11-28 01:00:00 UTC.
const began = 1795827600 * int64(1e9)

func at(ms int64, pid int32, r trace.Record) *trace.Record {
	r.Time, r.PID, r.TID = 1000+ms*1e6, pid, pid
	return &r
}

func call(ms int64, op trace.Op, seq, id, old, size uint64, frames ...uint64) *trace.Record {
	return at(ms, 7, trace.Record{Kind: trace.KindCall, CPU: 3, Call: trace.Call{
		Seq: seq, Op: op, Function: "malloc", Resource: 1, ID: id, OldID: old, Size: size,
		Stack: trace.Stack{Frames: frames, End: trace.StackComplete},
	}})
}

// story is a trace with each kind of end of a block.
func story() []*trace.Record {
	return []*trace.Record{
		at(0, 0, trace.Record{Kind: trace.KindHeader, Header: trace.Header{Format: "jsonl", Clock: trace.ClockMonotonic, WallTime: began, ClockTime: 1000}}),
		at(0, 7, trace.Record{Kind: trace.KindProcess, Process: trace.Process{Name: "/usr/bin/api --fast", Path: "/usr/bin/api"}}),
		at(0, 7, trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}}),
		at(0, 7, trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "file", Desc: "descriptors"}}),
		at(0, 7, trace.Record{Kind: trace.KindModule, Module: trace.Module{Path: "/usr/bin/api", BuildID: "abcd"}}),
		at(0, 7, trace.Record{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: 0x1000, End: 0x2000, Base: 0x1000, Path: "/usr/bin/api"}}),
		call(0, trace.OpAlloc, 1, 0x10, 0, 100, 0x1100, 0x1200), // freed
		call(1, trace.OpAlloc, 2, 0x20, 0, 200, 0x1100, 0x1200), // moved
		call(2, trace.OpFree, 3, 0x10, 0, 0, 0x1900),
		call(3, trace.OpMove, 4, 0x30, 0x20, 300, 0x1300), // replaced
		call(4, trace.OpAlloc, 5, 0x30, 0, 400, 0x1300),   // unknown, and its address is freed
		call(5, trace.OpAlloc, 6, 0x40, 0, 500, 0x1300),   // unknown
		at(6, 7, trace.Record{Kind: trace.KindLost, Lost: trace.Lost{Count: 1, Reason: trace.LostPaused, Since: 1000 + 5.5e6}}),
		call(7, trace.OpFree, 7, 0x30, 0, 0),
		at(8, 7, trace.Record{Kind: trace.KindLost, Lost: trace.Lost{Count: 9, Reason: "ring full"}}),
		at(8, 7, trace.Record{Kind: trace.KindCost, Cost: trace.Cost{Used: 5}}),
		at(9, 7, trace.Record{Kind: trace.KindCall, Call: trace.Call{Seq: 8, Op: trace.OpAlloc, Function: "open", Resource: 2, ID: 3, Args: []trace.Arg{{Name: "path", Value: `a"b`}}}}),
		call(10, trace.OpAlloc, 9, 0x50, 0, 600, 0x1400), // live
		at(11, 8, trace.Record{Kind: trace.KindCall, Call: trace.Call{Seq: 10, Op: trace.OpAlloc, Function: "malloc", Resource: 1, ID: 0x60, Size: 700}}),
		at(12, 8, trace.Record{Kind: trace.KindExec, Exec: trace.Exec{Name: "other"}}),
		at(13, 7, trace.Record{Kind: trace.KindThread, Thread: trace.Thread{Name: "main"}}),
		at(13, 0, trace.Record{Kind: trace.KindEnd}),
	}
}

// recorded is a trace.Reader of records.
type recorded []*trace.Record

func (s *recorded) ReadRecord(r *trace.Record) error {
	if len(*s) == 0 {
		return io.EOF
	}
	*r, *s = *(*s)[0].Clone(), (*s)[1:]
	return nil
}

// write adds the records to the dataset in dir.
func write(t *testing.T, dir, id, service string, records []*trace.Record) {
	t.Helper()
	s := Source{ID: id, File: "trace", Service: service}
	src := recorded(records)
	if err := s.ReadHead(&src); err != nil {
		t.Fatal(err)
	}
	w, err := New(dir, s, new(plain))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Add(r.Clone()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(true); err != nil {
		t.Fatal(err)
	}
}

// filesIn returns the files below dir.
func filesIn(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const folder = "date=2026-11-28/host=unknown/service=api"

// rowsOf reads the rows of a table of the trace "one".
func rowsOf[T any](t *testing.T, dir, table string) []T {
	t.Helper()
	rows, err := parquet.ReadFile[T](filepath.Join(dir, table, folder, "one.parquet"))
	if err != nil {
		t.Fatal(table, err)
	}
	return rows
}

func TestBlocks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "one", "", story())
	type end struct {
		Call, Size, EndedCall int64
		End                   string
		Lifetime, EndedSince  int64 // -1 for NULL
		Stack                 int64
	}
	number := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p
	}
	var got []end
	for _, b := range rowsOf[Block](t, dir, "blocks") {
		got = append(got, end{b.Call, b.Size, b.EndedCall, b.End, number(b.Lifetime), number(b.EndedSince), b.Stack})
	}
	slices.SortFunc(got, func(a, b end) int { return int(a.Call - b.Call) })
	const ms = int64(1e6)
	want := []end{
		{1, 100, 3, "freed", 2 * ms, 2 * ms, 1},
		{2, 200, 4, "moved", 2 * ms, 3 * ms, 1},
		{4, 300, 5, "replaced", -1, 4 * ms, 3},
		{5, 400, 7, "unknown", -1, 7 * ms, 3},
		{6, 500, 0, "unknown", -1, -1, 3},
		{8, 0, 0, "live", -1, -1, 0},
		{9, 600, 0, "live", -1, -1, 5},
		{10, 700, 0, "exec", -1, 12 * ms, 0},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestTables(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "one", "", story())
	calls := rowsOf[Call](t, dir, "calls")
	if len(calls) != 10 || *calls[3].OldAddress != 0x20 || *calls[3].Size != 300 || calls[2].Size != nil || *calls[0].Since != 0 || *calls[0].CPU != 2 ||
		calls[7].Resource != "file" || calls[7].Args != `[{"name":"path","value":"a\"b"}]` || calls[7].CPU != nil {
		t.Errorf("calls: %+v", calls)
	}
	var kinds []string
	for _, r := range rowsOf[Entry](t, dir, "records") {
		kinds = append(kinds, r.Kind)
	}
	var want []string
	for _, r := range story() {
		if r.Kind != trace.KindCall {
			want = append(want, r.Kind.String())
		}
	}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Errorf("records: %s", d)
	}
	losses := rowsOf[Loss](t, dir, "losses")
	if len(losses) != 2 || !losses[0].Gap || *losses[0].Duration != 0.5e6 || losses[0].Events != 0 || losses[1].Events != 9 {
		t.Errorf("losses: %+v", losses)
	}
	if m := rowsOf[Mapping](t, dir, "mappings"); len(m) != 1 || m[0].BuildID != "abcd" || m[0].Event != "map" {
		t.Errorf("mappings: %+v", m)
	}
	about := rowsOf[Trace](t, dir, "traces")
	if len(about) != 1 || about[0].StartNS != began || about[0].BuildID != "abcd" || about[0].Calls != 10 || about[0].LostEvents != 9 || about[0].Gaps != 1 || !about[0].Complete {
		t.Errorf("traces: %+v", about)
	}
	if f := rowsOf[Frame](t, dir, "frames"); len(f) != 6 || f[1].Address != 0x1200 || f[1].Position != 1 {
		t.Errorf("frames: %+v", f)
	}
}

// TestSums compares the sums of call sites with those of the table of blocks.
func TestSums(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "one", "", story())
	type key struct {
		stack    int64
		resource string
	}
	type sums struct{ allocated, live, unknown, freed, replaced [2]int64 }
	add := func(a *[2]int64, size int64) { a[0], a[1] = a[0]+1, a[1]+size }
	want, got := map[key]sums{}, map[key]sums{}
	for _, b := range rowsOf[Block](t, dir, "blocks") {
		s := want[key{b.Stack, b.Resource}]
		add(&s.allocated, b.Size)
		switch b.End {
		case "live":
			add(&s.live, b.Size)
		case "unknown":
			if b.EndedCall == 0 {
				add(&s.unknown, b.Size)
			} else {
				add(&s.freed, b.Size)
			}
		case "freed", "moved":
			add(&s.freed, b.Size)
		case "replaced":
			add(&s.replaced, b.Size)
		}
		want[key{b.Stack, b.Resource}] = s
	}
	for _, s := range rowsOf[Site](t, dir, "sites") {
		k := key{s.Stack, s.Resource}
		x := got[k]
		for to, from := range map[*[2]int64][2]int64{
			&x.allocated: {s.AllocatedBlocks, s.AllocatedBytes}, &x.live: {s.LiveBlocks, s.LiveBytes}, &x.unknown: {s.UnknownBlocks, s.UnknownBytes},
			&x.freed: {s.FreedBlocks, s.FreedBytes}, &x.replaced: {s.ReplacedBlocks, s.ReplacedBytes},
		} {
			to[0], to[1] = to[0]+from[0], to[1]+from[1]
		}
		got[k] = x
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestReplaced adds a trace again, also with another service: there is one, and nothing is
// left of the earlier one.
func TestReplaced(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "one", "web", story())
	write(t, dir, "two", "web", story())
	before := filesIn(t, dir)
	write(t, dir, "one", "web", story())
	if d := cmp.Diff(before, filesIn(t, dir)); d != "" || len(before) != 2*len(Tables()) {
		t.Errorf("added again: %s", d)
	}
	write(t, dir, "one", "a/../b", story())
	var want []string
	for _, name := range before {
		want = append(want, strings.Replace(name, "service=web/one", "service=a%2F..%2Fb/one", 1))
	}
	slices.Sort(want)
	if d := cmp.Diff(want, filesIn(t, dir)); d != "" {
		t.Errorf("added as another service: %s", d)
	}
	write(t, dir, "two", "a/../b", story())
	if left, err := filepath.Glob(filepath.Join(dir, "*/*/*/service=web")); err != nil || left != nil {
		t.Error(left, err)
	}
}

// TestDiscard gives up a trace: the dataset is as before.
func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	for _, before := range []int{0, len(Tables())} {
		s := Source{ID: "gone"}
		w, err := New(dir, s, new(plain))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range story() {
			if err := w.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Discard(); err != nil {
			t.Fatal(err)
		}
		if all := filesIn(t, dir); len(all) != before {
			t.Error(all)
		}
		write(t, dir, "one", "", story())
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*/date=__HIVE*")); err != nil || left != nil {
		t.Error(left, err)
	}
}

// TestNoTimes adds a trace that has no times: they are NULL, and so is its date.
func TestNoTimes(t *testing.T) {
	dir := t.TempDir()
	records := story()
	for _, r := range records {
		r.Time, r.Header.WallTime, r.Header.Clock, r.Lost.Since = 0, 0, trace.ClockUnknown, 0
	}
	write(t, dir, "one", "", records)
	rows, err := parquet.ReadFile[Call](filepath.Join(dir, "calls/date=__HIVE_DEFAULT_PARTITION__/host=unknown/service=api/one.parquet"))
	if err != nil || len(rows) != 10 || slices.ContainsFunc(rows, func(c Call) bool { return c.Since != nil }) {
		t.Error(rows, err)
	}
}
