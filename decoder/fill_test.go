package decoder_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder"
	"rtrace-bpf/trace"
)

// A decoder sets every field of a call, whatever the record held before: later readers
// change records in place.
func TestCallsAreFilled(t *testing.T) {
	for _, f := range encoder.Formats() {
		data := encode(t, f.Name, calls(3))
		open := func() *decoder.Trace {
			in, err := decoder.Open(bytes.NewReader(data), decoder.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		fresh, used := open(), open()
		n := 0
		for {
			var want trace.Record
			got := trace.Record{Time: 1, PID: 2, TID: 3, CPU: 4, Call: trace.Call{
				Seq: 1, Op: trace.OpMove, Function: "x", Resource: 2, ID: 3, OldID: 4, Size: 5, EntryTime: 6, Context: 7, Index: 8,
				Caller: trace.Caller{Function: "x", File: "y", Line: 9}, Thread: 10,
				Stack: trace.Stack{Frames: []uint64{1}, Names: []string{"x"}, End: trace.StackFailed, FramePointer: true, Reason: "x"},
				Args:  []trace.Arg{{Name: "x"}},
			}}
			err := fresh.ReadRecord(&want)
			if again := used.ReadRecord(&got); !errors.Is(again, err) {
				t.Fatalf("%s: %v and %v", f.Name, err, again)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			if want.Kind == trace.KindCall {
				n++
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s (-fresh +used):\n%s", f.Name, d)
				}
			}
		}
		if n != 3 {
			t.Errorf("%s: %d calls", f.Name, n)
		}
	}
}
