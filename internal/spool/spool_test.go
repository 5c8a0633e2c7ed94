package spool

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// blocks encodes records with a table of the given size.
func blocks(t testing.TB, table int, records ...*trace.Record) []byte {
	t.Helper()
	e := newEncoder(table)
	var out []byte
	for _, r := range records {
		if err := e.record(r); err != nil {
			t.Fatal(err)
		}
		if e.full() {
			out = append(out, e.take()...)
		}
	}
	if !e.empty() {
		out = append(out, e.take()...)
	}
	return out
}

// readAll reads all records, each into one that was used before.
func readAll(data []byte) ([]*trace.Record, error) {
	r := newReader(&source{rest: data})
	var all []*trace.Record
	for {
		rec := *testutil.FullRecord()
		if err := r.ReadRecord(&rec); err == io.EOF {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, testutil.OfKind(rec.Kind, rec.Clone()))
	}
}

func compare(t *testing.T, want, got []*trace.Record, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	if reflect.DeepEqual(want, got) {
		return // much faster
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Every field of every kind must be preserved, whatever was read before.
func TestEveryField(t *testing.T) {
	full := testutil.FullRecord()
	var want []*trace.Record
	for k := trace.KindHeader; ; k++ {
		if _, ok := trace.ParseKind(k.String()); !ok {
			break
		}
		want = append(want, testutil.OfKind(k, full), &trace.Record{Kind: k})
	}
	got, err := readAll(blocks(t, tableBytes, want...))
	compare(t, want, got, err)
}

func call(c trace.Call) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Time: 5, Call: c}
}

func TestExtremes(t *testing.T) {
	want := []*trace.Record{
		{
			Kind: trace.KindCall, Time: math.MaxInt64, PID: math.MinInt32, TID: math.MaxInt32, CPU: -1,
			Call: trace.Call{
				Seq: math.MaxUint64, Op: trace.OpMove, ID: math.MaxUint64, OldID: 1, Size: math.MaxUint64,
				EntryTime: math.MinInt64, Context: math.MaxUint32, Resource: math.MaxUint32, Index: math.MaxUint64,
			},
		},
		{Kind: trace.KindCall, Time: math.MinInt64, PID: math.MaxInt32, TID: math.MinInt32, CPU: math.MaxInt32},
		call(trace.Call{Op: 255, Seq: 1 << 63, Stack: trace.Stack{End: 255}}),
		call(trace.Call{Op: 3, OldID: 0, EntryTime: 5, ID: 5}),
		call(trace.Call{OldID: 5, ID: 5}),
		call(trace.Call{Stack: trace.Stack{Frames: []uint64{0, math.MaxUint64, 1 << 63, 0}}}),
		call(trace.Call{Stack: trace.Stack{Frames: []uint64{0, math.MaxUint64, 1 << 63, 0}, Names: []string{"", "a\xff\x00", "", strings.Repeat("n", 70000)}}}),
		call(trace.Call{Stack: trace.Stack{FramePointer: true}}),
		call(trace.Call{Stack: trace.Stack{Reason: "alone"}}),
		call(trace.Call{Stack: trace.Stack{End: trace.StackFailed, Reason: "lost"}}),
		call(trace.Call{Caller: trace.Caller{Line: math.MaxUint64}}),
		call(trace.Call{Caller: trace.Caller{File: "f"}, Function: "f"}),
		call(trace.Call{Args: []trace.Arg{{}, {Name: "x"}, {Value: "y\n\xfe"}}}),
		{Kind: trace.KindComment, Comment: "bad \x80 \xff \xed\xb2\x80 end\xe2\x82"},
		call(trace.Call{Seq: 1}),
		call(trace.Call{Seq: 0}),
	}
	for _, table := range []int{0, tableBytes} {
		got, err := readAll(blocks(t, table, want...))
		compare(t, want, got, err)
	}
}

// Stacks that differ in one property are different ones.
func TestStacksAreTakenApart(t *testing.T) {
	frames := []uint64{1, 2, 3, 4, 5, 6}
	stacks := []trace.Stack{
		{Frames: frames},
		{Frames: frames, End: trace.StackComplete},
		{Frames: frames, FramePointer: true},
		{Frames: frames, Reason: "r"},
		{Frames: frames, Names: []string{"", "", "", "", "", ""}},
		{Frames: frames, Names: []string{"", "", "", "", "", "a"}},
		{Frames: frames[:5]},
		{Frames: []uint64{1, 2, 3, 5, 4, 6}},
		{Frames: []uint64{0, 1, 2, 3, 4, 5, 6}},
		{},
	}
	var want []*trace.Record
	for range 3 {
		for _, s := range stacks {
			want = append(want, call(trace.Call{Stack: s}))
		}
	}
	got, err := readAll(blocks(t, tableBytes, want...))
	compare(t, want, got, err)
	x := newIndex(tableBytes)
	for round := range 3 {
		for n := range stacks {
			if ref, out := x.stack(&stacks[n]); ref != n+1 || out != (round == 0) {
				t.Errorf("round %d: stack %d is number %d, written out: %v", round, n, ref, out)
			}
		}
	}
}

// random returns a trace of many stacks and texts that repeat.
func random(calls int) []*trace.Record {
	rnd := rand.New(rand.NewPCG(1, 2))
	stack := func(n uint64) trace.Stack {
		r := rand.New(rand.NewPCG(n, 3))
		s := trace.Stack{End: trace.StackEnd(r.IntN(4)), FramePointer: r.IntN(5) == 0}
		for range r.IntN(30) {
			s.Frames = append(s.Frames, r.Uint64()>>r.IntN(60))
		}
		return s
	}
	functions := []string{"malloc", "free", "realloc", "calloc", ""}
	var all []*trace.Record
	for i := range calls {
		if rnd.IntN(50) == 0 {
			all = append(all, &trace.Record{Kind: trace.KindLost, Time: int64(i), Lost: trace.Lost{Count: rnd.Uint64(), Reason: "ring full"}})
			continue
		}
		r := &trace.Record{Kind: trace.KindCall, Time: int64(i) * 1000, PID: 7, TID: 7 + rnd.Int32N(3), CPU: rnd.Int32N(4), Call: trace.Call{
			Seq: uint64(i), Op: trace.Op(rnd.IntN(4)), Function: functions[rnd.IntN(len(functions))], Resource: 1,
			ID: rnd.Uint64() >> rnd.IntN(64), Size: rnd.Uint64() >> rnd.IntN(64), Stack: stack(rnd.Uint64N(3000)),
		}}
		if rnd.IntN(4) == 0 {
			r.Call.OldID, r.Call.EntryTime = rnd.Uint64(), r.Time-rnd.Int64N(1000)
		}
		if rnd.IntN(10) == 0 {
			r.Call.Caller = trace.Caller{Function: strings.Repeat("f", rnd.IntN(300)), File: functions[rnd.IntN(5)], Line: uint64(i)}
		}
		all = append(all, r)
	}
	return all
}

// A full table changes the size of the file and nothing else.
func TestBoundedTable(t *testing.T) {
	want := random(20000)
	last := math.MaxInt
	for _, table := range []int{0, 5 * overhead, 64 << 10, 256 << 10, tableBytes} {
		data := blocks(t, table, want...)
		if len(data) > last {
			t.Errorf("a table of %d bytes makes %d bytes, a smaller one %d", table, len(data), last)
		}
		last = len(data)
		got, err := readAll(data)
		compare(t, want, got, err)
		x := newIndex(table)
		for _, r := range want {
			if r.Kind == trace.KindCall {
				x.stack(&r.Call.Stack)
			}
		}
		held := overhead * len(x.stacks)
		for i := range x.stacks {
			held += 8 * len(x.stacks[i].Frames)
		}
		if held > table || x.left < 0 {
			t.Errorf("a table of %d bytes has %d", table, held)
		}
	}
}

// The caller may change the contents of a record after it was written.
func TestRecordsAreBorrowed(t *testing.T) {
	frames, name := []uint64{1, 2, 3}, []byte("malloc")
	e := newEncoder(tableBytes)
	var want []*trace.Record
	for i := range 20 {
		frames[1] = uint64(i % 5)
		name[5] = byte('a' + i%4)
		r := call(trace.Call{Function: string(name), Stack: trace.Stack{Frames: frames, Names: []string{string(name), "", ""}}})
		want = append(want, r.Clone())
		if err := e.record(r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readAll(e.take())
	compare(t, want, got, err)
}

func TestRefused(t *testing.T) {
	e := newEncoder(tableBytes)
	for _, r := range []*trace.Record{
		{},
		{Kind: trace.KindEnd + 1},
		call(trace.Call{Stack: trace.Stack{Frames: []uint64{1, 2}, Names: []string{"a"}}}),
	} {
		if err := e.record(r); err == nil || !e.empty() {
			t.Errorf("%v: %v, written: %v", r.Kind, err, !e.empty())
		}
	}
}

// A spool that is truncated or damaged anywhere yields whole records and then
// an error.
func TestDamage(t *testing.T) {
	want := []*trace.Record{testutil.OfKind(trace.KindCall, testutil.FullRecord()), {Kind: trace.KindEnd}}
	data := blocks(t, tableBytes, want...)
	for n := range len(data) {
		if got, err := readAll(data[:n]); (err == nil) != (n == 0) || len(got) > 0 {
			t.Errorf("cut at %d: %d records, %v", n, len(got), err)
		}
	}
	if _, err := readAll(append(slices.Clone(data), 1, 0, 0, 0, 1)); err == nil {
		t.Error("an unknown record was read")
	}
}

// FuzzRead reads any input; the records can be written and read again.
func FuzzRead(f *testing.F) {
	full := testutil.FullRecord()
	f.Add(blocks(f, tableBytes, testutil.OfKind(trace.KindCall, full), testutil.OfKind(trace.KindHeader, full)))
	f.Add(blocks(f, 0, random(60)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := readAll(data)
		if err != nil && err != errDamaged {
			t.Fatal(err)
		}
		again, err := readAll(blocks(t, 1<<10, records...))
		compare(t, records, again, err)
	})
}

// FuzzRoundTrip builds records from any input and checks that they are
// preserved.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("\x0a\x01\x02\x03\x04 some text \xff\x80\xed\xb2\x80 and more"), true)
	f.Add(bytes.Repeat([]byte{0xff}, 400), false)
	f.Add(bytes.Repeat([]byte{10, 0, 250}, 199), true)
	f.Fuzz(func(t *testing.T, data []byte, small bool) {
		var want []*trace.Record
		for len(data) > 0 {
			n := min(len(data), 1+int(data[0]))
			want = append(want, testutil.RandomRecord(data[:n]))
			data = data[n:]
		}
		table := tableBytes
		if small {
			table = 3 * overhead
		}
		got, err := readAll(blocks(t, table, want...))
		compare(t, want, got, err)
	})
}

// only removes data that earlier records left in a record.
func only(r *trace.Record) *trace.Record { return testutil.OfKind(r.Kind, r) }
