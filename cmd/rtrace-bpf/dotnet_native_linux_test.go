package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// checkBoth checks a trace of native calls and events of the runtime: the header is first
// and the end last, records are in order of time, calls have distinct numbers, all records
// are of process pid, and native and managed calls have different resources. It returns the
// numbers of managed calls, native calls and other events.
func checkBoth(t *testing.T, records []*trace.Record, pid int) (managed, native, events int) {
	t.Helper()
	var time int64
	var seq uint64
	resources := map[uint32]trace.Resource{}
	for i := range records {
		r := records[i]
		if (r.Kind == trace.KindHeader) != (i == 0) || (r.Kind == trace.KindEnd) != (i == len(records)-1) {
			t.Fatalf("record %d of %d is a %v", i, len(records), r.Kind)
		}
		if r.PID != int32(pid) {
			t.Fatalf("record %d, a %v, is of process %d, not %d", i, r.Kind, r.PID, pid)
		}
		switch r.Kind {
		case trace.KindCall, trace.KindEvent, trace.KindSample:
			if r.Time < time {
				t.Fatalf("record %d, a %v, is of %d, after %d", i, r.Kind, r.Time, time)
			}
			time = r.Time
		}
		switch r.Kind {
		case trace.KindResource:
			if old, known := resources[r.Resource.ID]; known {
				t.Errorf("resource %d is %+v and %+v", r.Resource.ID, old, r.Resource)
			}
			resources[r.Resource.ID] = r.Resource
		case trace.KindEvent, trace.KindSample:
			events++
		case trace.KindCall:
			if seq++; r.Call.Seq != seq {
				t.Fatalf("call %d has the number %d", seq, r.Call.Seq)
			}
			if resources[r.Call.Resource].Sampled {
				managed++
			} else {
				native++
			}
		}
	}
	return managed, native, events
}

// soon moves the date of a stream of version 4 to a minute from now. The clock of the
// stream still differs from that of this machine.
func soon(data []byte) []byte {
	data = append([]byte(nil), data...)
	const date = 8 + 4 + 20 + 3 + 3*4 + len("Trace") + 1
	at := time.Now().Add(time.Minute).UTC()
	for i, v := range []int{at.Year(), int(at.Month()), int(at.Weekday()), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond() / 1e6} {
		binary.LittleEndian.PutUint16(data[date+2*i:], uint16(v))
	}
	return data
}

// TestDotnetNative checks that events of a runtime and native calls of the same process are
// in one trace.
func TestDotnetNative(t *testing.T) {
	testutil.NeedBPF(t)
	data, err := os.ReadFile(recordedStream)
	if err != nil {
		t.Fatal(err)
	}
	want := callsOf(t, recordedStream)
	for _, format := range []string{"nettrace", "jsonl"} {
		t.Run(format, func(t *testing.T) {
			folder := t.TempDir()
			cmd := exec.Command(testutil.Build(t, "alloc"), "2", "500")
			cmd.Env = []string{"TMPDIR=" + folder}
			child := testutil.Start(t, cmd)
			child.Ready()
			serve(t, child.PID, folder, soon(data), 0)
			r := start(t, child, "--dotnet", "--native", "--format", format)
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			r.counts("rtrace-bpf", 3002, 3000)
			r.says(fmt.Sprintf("of the runtime: %d sampled allocations", want))
			r.says("the clock of the runtime differs from that of the machine by ")
			records := load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.%s", child.PID, format)))
			if managed, native, _ := checkBoth(t, records, child.PID); managed != want || native != 5002 {
				t.Errorf("%d managed and %d native calls, want %d and 5002", managed, native, want)
			}
			if n := count(records, "calloc"); n != 1000 {
				t.Errorf("%d calls of calloc, want 1000", n)
			}
		})
	}
}

// TestDotnetNativeStops checks that a runtime that still runs at the end is asked to stop,
// and that the trace contains the events that it sends until then.
func TestDotnetNativeStops(t *testing.T) {
	testutil.NeedBPF(t)
	data, err := os.ReadFile(recordedStream)
	if err != nil {
		t.Fatal(err)
	}
	pid, folder := idle(t)
	serve(t, pid, folder, soon(data), len(data)/2)
	path := filepath.Join(t.TempDir(), "both.jsonl")
	if code, errOut := inDotnet(t, pid, "--native", "--duration", "100ms", "--format", "jsonl", "-o", path); code != cli.OK {
		t.Errorf("exit code %d, %s", code, errOut)
	}
	want := callsOf(t, recordedStream)
	if managed, native, _ := checkBoth(t, load(t, path), pid); managed != want || native != 0 {
		t.Errorf("%d managed and %d native calls, want %d and none", managed, native, want)
	}
}

// TestDotnetNativeCut checks that the native trace is whole if the stream of the runtime
// breaks off, and that the exit code reports the missing events.
func TestDotnetNativeCut(t *testing.T) {
	testutil.NeedBPF(t)
	data, err := os.ReadFile(recordedStream)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cmd := exec.Command(testutil.Build(t, "alloc"), "1", "100")
	cmd.Env = []string{"TMPDIR=" + folder}
	child := testutil.Start(t, cmd)
	child.Ready()
	serve(t, child.PID, folder, data[:len(data)-1], 0)
	r := start(t, child, "--dotnet", "--native", "--format", "jsonl")
	child.Go()
	child.Succeed()
	r.ends(cli.Incomplete)
	r.says("break off")
	records := load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.jsonl", child.PID)))
	if n := count(records, "calloc"); n != 100 {
		t.Errorf("%d calls of calloc, want 100", n)
	}
}
