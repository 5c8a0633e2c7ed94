package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// eachSideband runs a test with each source of sideband records.
func eachSideband(t *testing.T, test func(t *testing.T, way string)) {
	for _, way := range []string{"task", "machine"} {
		t.Run(way, func(t *testing.T) { test(t, "--sideband="+way) })
	}
}

// A neighbour makes more mappings than any buffer holds while the tracer is stopped. This
// must not count as a loss of the traced process.
func TestNeighbourMapsWhileNobodyReads(t *testing.T) {
	testutil.NeedBPF(t)
	eachSideband(t, func(t *testing.T, way string) {
		program, quiet := testutil.Build(t, "mapcode"), testutil.Build(t, "alloc")
		neighbour := testutil.Spawn(t, program, "50000")
		neighbour.Ready()
		child := testutil.Spawn(t, quiet, "2", "100", "log")
		child.Ready()
		r := start(t, child, "--format", "jsonl", "--strict", way)
		r.Signal(syscall.SIGSTOP)
		neighbour.Go()
		neighbour.Ready()
		r.Signal(syscall.SIGCONT)
		neighbour.Go()
		neighbour.Succeed()
		child.Go()
		child.Succeed()
		r.ends(cli.OK)
		if lost := lostIn(load(t, recordedBy(r, child))); len(lost) > 0 {
			t.Errorf("lost: %v", lost)
		}
	})
}

// Neighbours that make mappings all the time, on every processor, cause no loss either.
// Buffers of the whole machine are left out, because they can then lose records of the
// traced process itself.
func TestNeighboursMapAllTheTime(t *testing.T) {
	testutil.NeedBPF(t)
	for _, way := range []string{"--sideband=task", "--sideband=auto"} {
		t.Run(way, func(t *testing.T) {
			program, quiet := testutil.Build(t, "mapcode"), testutil.Build(t, "alloc")
			for range 2 {
				neighbour := testutil.Spawn(t, program, "0")
				neighbour.Ready()
				neighbour.Go()
				defer neighbour.Signal(syscall.SIGKILL)
			}
			for range 3 {
				child := testutil.Spawn(t, quiet, "2", "2000", "log")
				child.Ready()
				r := start(t, child, append([]string{"--format", "jsonl", "--strict", way}, ample...)...)
				child.Go()
				child.Succeed()
				r.ends(cli.OK)
				if lost := lostIn(load(t, recordedBy(r, child))); len(lost) > 0 {
					t.Errorf("lost: %v", lost)
				}
			}
		})
	}
}

func recordedBy(r *running, child *testutil.Child) string {
	return filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.jsonl", child.PID))
}

// TestOwnMappingsDropped checks dropped records of the traced process itself. Only those
// count as lost whose contents are still missing when its mappings and threads are read
// again, and each is described.
func TestOwnMappingsDropped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	eachSideband(t, func(t *testing.T, way string) {
		for name, test := range map[string]struct {
			file string
			lost uint64
			code cli.ExitCode
		}{
			"nothing differs":             {"", 0, cli.OK},
			"a mapping and a name differ": {file, 2, cli.Incomplete},
		} {
			t.Run(name, func(t *testing.T) {
				args := []string{"50000"}
				if test.file != "" {
					args = append(args, test.file)
				}
				child := waiting(t, "mapcode", args...)
				r := start(t, child, "--format", "jsonl", way)
				r.Signal(syscall.SIGSTOP)
				child.Go()
				child.Ready()
				r.Signal(syscall.SIGINT)
				r.Signal(syscall.SIGCONT)
				r.ends(test.code)
				records := load(t, recordedBy(r, child))
				if lost := lostIn(records)["sideband lost"]; lost != test.lost {
					t.Errorf("%d lost, want %d\n%s", lost, test.lost, r.Stderr())
				}
				if test.lost > 0 {
					r.says(test.file + " at 0x")
					r.says(fmt.Sprintf("thread %d (mapped)", child.PID))
					r.says("No call is missing")
					known(t, records, test.file, int32(child.PID), "mapped")
				}
				child.Go()
				child.Succeed()
			})
		}
	})
}

// When the process has ended nothing can be read again. Its dropped records count as one
// loss, which is described.
func TestRecordsDroppedBeforeTheEnd(t *testing.T) {
	child := waiting(t, "names", "100000")
	r := start(t, child, "--format", "jsonl", "--sideband=task")
	r.Signal(syscall.SIGSTOP)
	child.Go()
	child.Succeed()
	r.Signal(syscall.SIGCONT)
	r.ends(cli.Incomplete)
	if lost := lostIn(load(t, recordedBy(r, child)))["sideband lost"]; lost != 1 {
		t.Errorf("%d lost, want 1", lost)
	}
	r.says("the process has ended")
}

// known fails the test unless the trace has a mapping of a file and a name of a thread.
func known(t *testing.T, records []*trace.Record, file string, tid int32, name string) {
	t.Helper()
	mapped, got := false, ""
	for _, rec := range records {
		switch {
		case rec.Kind == trace.KindMapping && rec.Mapping.Path == file:
			mapped = true
		case rec.Kind == trace.KindThread && rec.TID == tid:
			got = rec.Thread.Name
		}
	}
	if !mapped || got != name {
		t.Errorf("%s is in the trace: %v; thread %d is %q, want %q", file, mapped, tid, got, name)
	}
}

// Threads that start while the tracer attaches have their names in the trace.
func TestThreadsMadeWhileAttaching(t *testing.T) {
	eachSideband(t, func(t *testing.T, way string) {
		for range 3 {
			child := waiting(t, "makethreads")
			r := start(t, child, "--format", "jsonl", way)
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			names, calls := map[int32]string{}, 0
			for _, rec := range load(t, recordedBy(r, child)) {
				switch {
				case rec.Kind == trace.KindThread:
					names[rec.TID] = rec.Thread.Name
				case rec.Kind == trace.KindCall && rec.Call.Size == 100:
					calls++
					if want := "t" + strconv.Itoa(int(rec.TID)); names[rec.TID] != want {
						t.Errorf("thread %s has the name %q", want, names[rec.TID])
					}
				}
			}
			if calls == 0 {
				t.Error("no calls: the test does not test")
			}
		}
	})
}
