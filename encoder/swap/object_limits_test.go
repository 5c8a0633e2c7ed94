package swap_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	decoder "rtrace-bpf/decoder/swap"
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
)

// stamp matches the parts of a message that do not depend on the call.
var stamp = regexp.MustCompile(` seq=\d+ time=[0-9.]+`)

// A wait begins as long before its end as it took, even if other messages were written
// in between, and the stack follows the end.
func TestObjectTimes(t *testing.T) {
	wait := objectCall(trace.OpAlloc, "pthread_mutex_lock", "mutex", 16, 2*second+5)
	wait.Stack = trace.Stack{Frames: []uint64{0x10, 0x20}, End: trace.StackUnknown}
	records := objectTrace(objectCall(trace.OpAlloc, "open", "fd", 3, 1), wait)
	data, _ := write(t, swap.Options{}, records...)
	lines := dump(t, data)
	for i, want := range []string{
		"PROBE_FILE seq=0 time=1700000007.000000000", "PROBE_SYNC seq=1 time=1700000005.999999995", "PROBE_SYNC seq=2 time=1700000008.000000000",
		"STACK seq=3 time=1700000008.000000000 sequence=2 frames=[0x10 0x20]",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("%q, want %q", lines, want)
		}
	}
	compareCalls(t, records, readCalls(t, data))

	// No wait begins before the first time that can be written.
	records = []trace.Record{records[0], records[5], records[len(records)-1]}
	records[0].Header.Clock, records[2].Time = trace.ClockUnknown, 7
	data, _ = write(t, swap.Options{}, records...)
	if got := readCalls(t, data); len(got) != 1 || got[0].Call.Size != 7 || got[0].Time != second*second+7 {
		t.Errorf("%d calls", len(got))
	}
}

// Objects without a message are left out with a remark, and what is too long is cut.
func TestObjectLimits(t *testing.T) {
	many := objectCall(trace.OpAlloc, "open", "fd", 3, 1, "path", strings.Repeat("p", 100_000))
	for range 20 {
		many.Args = append(many.Args, trace.Arg{Name: "x", Value: "1"})
	}
	data, w := write(t, swap.Options{}, objectTrace(
		objectCall(trace.OpAlloc, "mmap", "mmap", 0x1000, 4096), objectCall(trace.OpMove, "mremap", "fd", 4, 1), objectCall(trace.OpNone, "open", "fd", 4, 1),
		objectCall(trace.OpAlloc, "pthread_create", "thread", 0, 1), objectCall(trace.OpAlloc, "open", "fd", 1<<31, 1),
		many, objectCall(trace.OpAlloc, "", "fd", 9, 1), objectCall(trace.OpFree, "", "mutex", 9, 0))...)
	if s := w.Stats(); s.Foreign != 2 || s.Long != 3 || len(s.Remarks()) != 2 {
		t.Errorf("%+v", s)
	}
	got := readCalls(t, data)
	if len(got) != 3 || len(got[0].Call.Args) != 16 || len(got[0].Call.Args[0].Value) != 4096 || got[1].Call.Function != "open" || got[2].Call.Function != "pthread_mutex_unlock" {
		t.Errorf("%d calls", len(got))
	}
	for _, r := range got {
		if r.Call.Op == trace.OpNone {
			t.Errorf("%+v", r.Call)
		}
	}
}

// Whatever texts and numbers a call has, its messages can be read, and what is read is
// written the same way again.
func FuzzObjects(f *testing.F) {
	f.Add("open", uint8(1), uint64(3), uint64(1), "path", "x\x00y", "flags", "0x2", false)
	f.Add("pthread_mutex_lock", uint8(4), uint64(1<<63), uint64(1<<63), "", "", "", "", false)
	f.Add("bind", uint8(1), uint64(3), uint64(1), "family", "AF_INET", "address:port", "1.2.3.4:70000", true)
	f.Fuzz(func(t *testing.T, function string, resource uint8, id, size uint64, n1, v1, n2, v2 string, ends bool) {
		op := trace.OpAlloc
		if ends {
			op = trace.OpFree
		}
		c := objectCall(op, function, objectResources[int(resource)%len(objectResources)], id, size, n1, v1, n2, v2)
		first, _ := write(t, swap.Options{}, objectTrace(c)...)
		again := func(data []byte) []byte {
			r, err := decoder.NewReader(bytes.NewReader(data), decoder.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var records []trace.Record
			all, err := trace.Load(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				records = append(records, *r)
			}
			out, _ := write(t, swap.Options{}, records...)
			return out
		}
		second := again(first)
		if third := again(second); !bytes.Equal(second, third) {
			t.Errorf("written again:\n%x\n%x", second, third)
		}
	})
}
