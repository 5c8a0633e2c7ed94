package truth

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// logged runs a program under the shim and returns its output and the folder of the logs.
func logged(t *testing.T, build testutil.Builder, name string, args ...string) (*testutil.Child, string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(build(t, name), args...)
	cmd.Env = append(os.Environ(), "SHIM_LOG="+dir, "LD_PRELOAD="+build(t, "shim", "-shared", "-fPIC", "-static-libgcc"))
	child := testutil.Start(t, cmd)
	child.Ready()
	return child, dir
}

// entries returns the calls of each thread of a log.
func (l *Log) entries(t *testing.T) map[int32][]Entry {
	t.Helper()
	all := map[int32][]Entry{}
	for tid := range l.threads {
		c := l.cursor(tid)
		for {
			e, err := c.next()
			if err != nil {
				t.Fatal(err)
			}
			if e == nil {
				break
			}
			all[tid] = append(all[tid], *e)
		}
	}
	return all
}

// The shim logs each call that a program logs itself, in the order of its thread.
func TestShimSeesWhatTheProgramDoes(t *testing.T) {
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		for name, args := range map[string][]string{"every": nil, "aligned": {"2"}, "alloc": {"8", "300", "log"}} {
			t.Run(name, func(t *testing.T) {
				child, dir := logged(t, build, name, args...)
				mark, err := NewMark(dir, child.PID)
				if err != nil {
					t.Fatal(err)
				}
				child.Go()
				want := map[int32][]testutil.Call{}
				for _, c := range child.Report().Calls {
					want[int32(c.TID)] = append(want[int32(c.TID)], c)
				}
				all, err := Open(dir, child.PID)
				if err != nil || len(all) != 1 || all[0].Unlogged != 0 {
					t.Fatalf("logs %+v, %v", all, err)
				}
				got := all[0].entries(t)
				for tid, calls := range want {
					sameCalls(t, got[tid][mark.done[tid]:], calls)
				}
				if len(want) == 0 {
					t.Error("the program has noted nothing")
				}
			})
		}
	})
}

// sameCalls looks for the calls that a program logged among those of the shim. libc's own calls
// are between them.
func sameCalls(t *testing.T, got []Entry, want []testutil.Call) {
	t.Helper()
	for _, c := range want {
		i := slices.IndexFunc(got, func(e Entry) bool {
			v := e.Event()
			return e.Done && v.Op.String() == c.Op && e.Function == c.Function && e.Old == c.Old && e.Made == c.Ptr &&
				(v.Op == trace.OpNone || v.Size == c.Size)
		})
		if i < 0 {
			t.Fatalf("the shim has not seen, in this order: %+v", c)
		}
		got = got[i+1:]
	}
}

// However the program ends, its log is complete up to that moment: only the last call of a
// thread may be open. Children have logs of their own, or none.
func TestLogOutlivesTheProgram(t *testing.T) {
	ends := map[string]int{
		"return": 3, "exit": 3, "_exit": 3, "quick_exit": 3, "abort": 128 + 6, "kill": 128 + 9, "segv": 128 + 11,
		"thread": 0, "running": 3, "exec": 3, "threadexec": 3,
	}
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		plug := build(t, "plug", "-shared", "-fPIC")
		for end, code := range ends {
			t.Run(end, func(t *testing.T) {
				child, dir := logged(t, build, "schedule", "5", "6", "300", end, plug)
				child.Go()
				if got := child.Wait(); got != code {
					t.Fatalf("exit code %d, want %d\n%s", got, code, child.Stderr())
				}
				wholeLogs(t, dir, child.PID)
			})
		}
	})
}

func wholeLogs(t *testing.T, dir string, pid int) {
	t.Helper()
	all, err := Open(dir, pid)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range all {
		if l.Unlogged != 0 || l.Foreign == 0 {
			t.Errorf("%d calls before there was a log, %d by children of vfork", l.Unlogged, l.Foreign)
		}
		for tid, calls := range l.entries(t) {
			n += len(calls)
			for i, e := range calls {
				if !e.Done && i != len(calls)-1 {
					t.Errorf("thread %d: call %d of %d did not come back", tid, i, len(calls))
				}
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < len(all)+2 {
		t.Errorf("%d logs, %v; want also those of children", len(files), err)
	}
	if n < 6*300 {
		t.Errorf("%d calls in the log", n)
	}
}
