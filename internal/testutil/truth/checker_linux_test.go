package truth

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// slice is a trace in memory.
type slice []trace.Record

func (s *slice) ReadRecord(r *trace.Record) error {
	if len(*s) == 0 {
		return io.EOF
	}
	*r = (*s)[0]
	*s = (*s)[1:]
	return nil
}

// perfect returns the trace that a perfect tracer would have made.
func perfect(t *testing.T, dir string, pid int) slice {
	t.Helper()
	all, err := Open(dir, pid)
	if err != nil {
		t.Fatal(err)
	}
	var s slice
	for tid, calls := range all[0].entries(t) {
		for i := range calls {
			e, v := &calls[i], calls[i].Event()
			if v.Op == trace.OpNone {
				continue
			}
			rec := trace.Record{Kind: trace.KindCall, Time: e.End, TID: tid, CPU: 1}
			rec.Call = trace.Call{Op: v.Op, Function: v.Function, ID: v.Made, OldID: v.Old, Size: v.Size, EntryTime: e.Begin}
			if v.Op == trace.OpFree {
				rec.Time, rec.Call.ID, rec.Call.OldID = e.Begin, v.Old, 0
			}
			s = append(s, rec)
		}
	}
	slices.SortStableFunc(s, func(a, b trace.Record) int { return cmp.Compare(a.Time, b.Time) })
	for i := range s {
		s[i].Call.Seq = uint64(i + 1)
	}
	return s
}

// find returns the index of a call in the middle of the trace.
func (s slice) find(op trace.Op, function string) int {
	middle := len(s) / 3
	return middle + slices.IndexFunc(s[middle:], func(r trace.Record) bool {
		return r.Call.Op == op && r.Call.Function == function && r.Call.Size%2 == 0
	})
}

// Every kind of error in a trace is found.
func TestCheckerFindsWhatIsWrong(t *testing.T) {
	child, dir := logged(t, testutil.Build, "alloc", "4", "400", "log")
	child.Go()
	child.Succeed()
	whole := perfect(t, dir, child.PID)
	for name, test := range map[string]struct {
		change func(s slice) slice
		want   string // empty: nothing is wrong
	}{
		"nothing": {func(s slice) slice { return s }, ""},
		"a call is missing": {func(s slice) slice {
			return slices.Delete(s, 100, 101)
		}, "the calls differ"},
		"the last call is missing": {func(s slice) slice { return s[:len(s)-1] }, "a call of the log is not in the trace"},
		"a call too many": {func(s slice) slice {
			return slices.Insert(s, 100, s[99])
		}, ""},
		"another function": {func(s slice) slice {
			s[s.find(trace.OpAlloc, "calloc")].Call.Function = "malloc"
			return s
		}, "the calls differ"},
		"another size":   {func(s slice) slice { s[s.find(trace.OpAlloc, "malloc")].Call.Size++; return s }, "the calls differ"},
		"another thread": {func(s slice) slice { s[200].TID = 1; return s }, "which has no log"},
		"another time":   {func(s slice) slice { s[200].Time += 1e9; return s }, "the time in the trace is"},
		"a move in two": {func(s slice) slice {
			i := s.find(trace.OpMove, "realloc")
			free := s[i]
			free.Time = free.Call.EntryTime
			free.Call.Op, free.Call.ID, free.Call.OldID, free.Call.Size = trace.OpFree, free.Call.OldID, 0, 0
			s[i].Call.Op, s[i].Call.OldID = trace.OpAlloc, 0
			return slices.Insert(s, i, free)
		}, ""},
		"half of a move": {func(s slice) slice {
			i := s.find(trace.OpMove, "realloc")
			c := &s[i].Call
			c.Op, c.ID, c.OldID, c.Size = trace.OpFree, c.OldID, 0, 0
			return s
		}, "the second half of a realloc should be"},
		"loss": {func(s slice) slice { return slices.Insert(s, 7, trace.Record{Kind: trace.KindLost}) }, "are missing from the trace"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := NewChecker(dir, child.PID, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := test.change(slices.Clone(whole))
			err = c.Check(&s)
			switch {
			case name == "a call too many" && err == nil:
				t.Error("a call that was not made was not found")
			case name == "a call too many":
			case test.want == "" && err != nil:
				t.Errorf("a right trace is reported as wrong: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

// writeLog writes the log of a process with the given calls, one block per thread in the order
// of their IDs.
func writeLog(t *testing.T, pid int, threads map[int32][]Entry) string {
	t.Helper()
	dir := t.TempDir()
	head := []uint64{binary.NativeEndian.Uint64([]byte(logMagic)), logVersion, 8, uint64(pid), uint64(len(threads)), 0, 0, 0, 0}
	for i := range Functions {
		head = append(head, uint64(i+1)) // where the blocks are
	}
	file := wordsOf(head)
	for _, tid := range slices.Sorted(maps.Keys(threads)) {
		words := []uint64{uint64(tid)}
		for _, e := range threads[tid] {
			function := uint64(slices.Index(Functions[:], e.Function))
			words = append(words, 2|function<<8, e.Old, e.Made, e.Size, uint64(e.Begin), uint64(e.End))
		}
		file = append(file, wordsOf(words)...)
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-0", pid)), file, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// wordsOf returns a block of a log.
func wordsOf(words []uint64) []byte {
	block := make([]byte, 0, blockBytes)
	for _, w := range words {
		block = binary.NativeEndian.AppendUint64(block, w)
	}
	return block[:blockBytes]
}

// An order that is right for each thread but not for a block that one of them took from another
// is found.
func TestCheckerFindsBlocksLiveTwice(t *testing.T) {
	dir := writeLog(t, 1, map[int32][]Entry{
		1: {{Function: "malloc", Made: 0x10, Size: 8, Begin: 1, End: 2}, {Function: "free", Old: 0x10, Begin: 3, End: 4}},
		2: {{Function: "malloc", Made: 0x10, Size: 8, Begin: 3, End: 9}, {Function: "realloc", Old: 0x10, Made: 0x20, Size: 9, Begin: 10, End: 12}},
	})
	call := func(tid int32, time int64, c trace.Call) trace.Record {
		return trace.Record{Kind: trace.KindCall, TID: tid, Time: time, Call: c}
	}
	made := call(1, 2, trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 0x10, Size: 8})
	freed := call(1, 3, trace.Call{Op: trace.OpFree, Function: "free", ID: 0x10})
	again := call(2, 5, trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 0x10, Size: 8})
	moved := call(2, 11, trace.Call{Op: trace.OpMove, Function: "realloc", OldID: 0x10, ID: 0x20, Size: 9})
	for _, test := range []struct {
		s    slice
		want string
	}{
		{slice{made, freed, again, moved}, ""},
		{slice{made, again, freed, moved}, "block 0x10 was live already, since call 0 of thread 1"},
		{slice{again, made, freed, moved}, "block 0x10 was live already"},
		{slice{made, freed, again}, "a call of the log is not in the trace"},
		{slice{again, moved, made, freed, freed}, "no further call"},
	} {
		c, err := NewChecker(dir, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Check(&test.s)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("got %v, want %q in it", err, test.want)
		}
	}
}

// The text of a difference contains what is needed to understand it.
func TestDifferenceIsExplained(t *testing.T) {
	child, dir := logged(t, testutil.Build, "every")
	child.Go()
	child.Succeed()
	s := perfect(t, dir, child.PID)
	for i := range s {
		if s[i].Call.Function == "posix_memalign" {
			s[i].Call.Size = 77
		}
	}
	c, err := NewChecker(dir, child.PID, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := c.Check(&s).Error()
	for _, want := range []string{
		"the calls differ", "both   move", "! trace  alloc", "77 bytes by posix_memalign", "! log    alloc", "200 bytes by posix_memalign",
		"log    nothing by posix_memalign", "log    alloc", "trace  alloc", "(called memalign)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("without %q:\n%s", want, text)
		}
	}
}
