package snapshot_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/recording/snapshot"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/internal/recording/watch"
	"rtrace-bpf/trace"
)

// files takes records as a session does.
type files struct {
	*snapshot.Files
	to trace.Writer // of the view
}

func (f *files) add(r *trace.Record) {
	f.Observe(r)
	_ = f.to.WriteRecord(r) // it cannot fail
}

// open opens snapshots of this process, every second, next to a trace in a new directory.
func open(t *testing.T) (f *files, path string, printed *strings.Builder) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "trace")
	out, err := output.Open(t.Context(), &output.Options{Path: path}, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	printed = new(strings.Builder)
	line := status.New(status.Options{Out: printed})
	view := watch.NewView()
	t.Cleanup(view.Close)
	f = &files{to: view.Writer(os.Getpid())}
	f.Files, err = snapshot.Open(os.Getpid(), out, view, snapshot.Options{Every: time.Second, Format: "json"}, line)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f, path, printed
}

// document is what tests need of a snapshot.
type document struct {
	Seconds   float64
	Final     bool
	Resources []struct {
		Live struct{ Blocks, Bytes uint64 }
	}
}

func read(t *testing.T, path string, number int) (x document) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("%s.snapshot-%04d.json", path, number))
	if err == nil {
		err = json.Unmarshal(text, &x)
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// began is when the trace begins: at a time of the clock that is long over, so that Tick
// finds all snapshots due.
const began = int64(time.Second)

// at passes an allocation at a time since the beginning to f.
func at(f *files, after time.Duration, id uint64) {
	f.add(&trace.Record{
		Kind: trace.KindCall, PID: int32(os.Getpid()), TID: 1, Time: began + int64(after),
		Call: trace.Call{Op: trace.OpAlloc, Function: "malloc", Resource: 1, ID: id, Size: 10, Stack: trace.Stack{Frames: []uint64{id}}},
	})
}

func begin(f *files) {
	f.add(&trace.Record{Kind: trace.KindHeader, Time: began})
	f.add(&trace.Record{Kind: trace.KindResource, Time: began, Resource: trace.Resource{ID: 1, Type: "memory"}})
}

// A snapshot has the events before its time, whenever it is written. If several times have
// passed without events, it is for the last of them.
func TestEventTime(t *testing.T) {
	for name, test := range map[string]struct {
		events []time.Duration // in ms
		at     float64         // time of the first snapshot
		before uint64          // events in it
		end    float64
	}{
		"a busy process": {[]time.Duration{100, 999, 1000, 1500}, 1, 2, 1.5},
		"a long gap":     {[]time.Duration{100, 5200}, 5, 1, 5.2},
		"a late start":   {[]time.Duration{3000}, 3, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			f, path, printed := open(t)
			begin(f)
			for i, after := range test.events {
				at(f, after*time.Millisecond, uint64(i+1))
			}
			f.End(nil)
			check := func(x document, seconds float64, blocks uint64) {
				if len(x.Resources) == 0 && blocks == 0 && x.Seconds == seconds {
					return
				}
				if x.Seconds != seconds || len(x.Resources) != 1 || x.Resources[0].Live.Blocks != blocks || x.Resources[0].Live.Bytes != 10*blocks {
					t.Errorf("%+v, want %d blocks after %v s", x, blocks, seconds)
				}
			}
			first, last := read(t, path, 1), read(t, path, 2)
			check(first, test.at, test.before)
			check(last, test.end, uint64(len(test.events)))
			if first.Final || !last.Final {
				t.Errorf("final: %v, %v", first.Final, last.Final)
			}
			if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 3 {
				t.Errorf("%v, %v", names, err)
			}
			if printed.Len() > 0 || f.Missing() != "" {
				t.Errorf("%s%s", printed, f.Missing())
			}
		})
	}
}

// Without events, Tick takes a snapshot that is due, at its second call in a row.
func TestIdle(t *testing.T) {
	f, path, _ := open(t)
	begin(f)
	at(f, 100*time.Millisecond, 1)
	f.Tick() // takes none, because more events may follow the one before
	at(f, 200*time.Millisecond, 2)
	f.Tick()
	f.Tick()
	f.End(nil)
	if x := read(t, path, 1); x.Final || x.Resources[0].Live.Blocks != 2 || x.Seconds < 1 {
		t.Errorf("%+v", x)
	}
	if x := read(t, path, 2); !x.Final {
		t.Errorf("two snapshots were taken before the end: %+v", x)
	}
}

// Failures are printed once, and counted. Numbers of files that are missing stay free.
func TestFailures(t *testing.T) {
	f, path, printed := open(t)
	for _, n := range []int{1, 2} {
		if err := os.WriteFile(fmt.Sprintf("%s.snapshot-%04d.json", path, n), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begin(f)
	at(f, 1100*time.Millisecond, 1)
	f.End(nil)
	if strings.Count(printed.String(), "\n") != 1 || !strings.Contains(printed.String(), "snapshot-0001.json: the file exists") {
		t.Errorf("printed %q", printed)
	}
	if want := fmt.Sprintf("2 of 2 snapshots of process %d are missing (2 could not be written)", os.Getpid()); f.Missing() != want {
		t.Errorf("missing %q, want %q", f.Missing(), want)
	}
}
