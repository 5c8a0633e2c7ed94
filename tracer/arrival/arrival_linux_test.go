package arrival

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/testutil"
)

func TestMain(m *testing.M) {
	if os.Args[0] == Name {
		Run()
		return
	}
	testutil.Main(m)
}

// begun starts to wait for the program launch under a name of its own.
func begun(t *testing.T) (a *Arrival, path string) {
	t.Helper()
	testutil.NeedBPF(t)
	program := testutil.Build(t, "launch")
	testutil.NoteStart(t) // the holder
	path = filepath.Join(t.TempDir(), fmt.Sprintf("a%d", os.Getpid()))
	if err := os.Symlink(program, path); err != nil {
		t.Fatal(err)
	}
	a, err := Start(filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	return a, path
}

// stops waits until a child of ours stops. If it ends, the test fails.
func stops(t *testing.T, pid int) {
	t.Helper()
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			if err != nil || info.Code != 5 { // CLD_STOPPED
				t.Fatalf("it has not stopped: %v, %d", err, info.Code)
			}
			return
		}
	}
}

func send(t *testing.T, pid int, sig unix.Signal) {
	t.Helper()
	if err := unix.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

// freeze stops the holder, so that it is too late.
func freeze(t *testing.T, a *Arrival) {
	t.Helper()
	send(t, a.pid, unix.SIGSTOP)
	stops(t, a.pid)
}

// complete checks that the program has done everything.
func complete(t *testing.T, child *testutil.Child) {
	t.Helper()
	if n := len(child.Report().Done()); n < 9 {
		t.Errorf("it made %d calls", n)
	}
}

// A process that is not held in time is stopped before its first instruction, and is held when
// the holder is ready.
func TestLateHolder(t *testing.T) {
	a, path := begun(t)
	freeze(t, a)
	child := testutil.Spawn(t, path)
	stops(t, child.PID)
	send(t, a.pid, unix.SIGCONT)
	pid, err := a.Await(t.Context())
	if err != nil || pid != child.PID {
		t.Fatalf("%d, %v; want %d", pid, err, child.PID)
	}
	if _, stopped := a.Waited(); !stopped {
		t.Error("it reports that it was not stopped")
	}
	if there, err := a.Next(); !there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	if maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)); err != nil || !strings.Contains(string(maps), "libc") {
		t.Errorf("its libraries are not there: %v\n%s", err, maps)
	}
	if err := errors.Join(a.Release(), a.Close()); err != nil {
		t.Error(err)
	}
	complete(t, child)
}

// However holder and tracer end while the process is stopped or held, the process continues to
// run.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *Arrival){
		"holder": func(t *testing.T, a *Arrival) {
			send(t, a.pid, unix.SIGKILL)
			if _, err := a.Await(t.Context()); !errors.Is(err, ErrGone) {
				t.Errorf("without a holder: %v", err)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		},
		"tracer": func(t *testing.T, a *Arrival) { // its end closes the socket
			if err := unix.Shutdown(a.fd, unix.SHUT_RDWR); err != nil {
				t.Error(err)
			}
			send(t, a.pid, unix.SIGCONT)
		},
		"in order": func(t *testing.T, a *Arrival) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			send(t, a.pid, unix.SIGCONT)
			if _, err := a.Await(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("after its end: %v", err)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name+", stopped", func(t *testing.T) {
			a, path := begun(t)
			freeze(t, a)
			child := testutil.Spawn(t, path)
			stops(t, child.PID)
			end(t, a)
			complete(t, child)
			_ = a.Close() // a second call has nothing to do
		})
		t.Run(name+", nobody", func(t *testing.T) {
			a, path := begun(t)
			freeze(t, a)
			end(t, a)
			complete(t, testutil.Spawn(t, path))
			_ = a.Close()
		})
	}
	for name, end := range map[string]func(*Arrival) error{
		"holder":   func(a *Arrival) error { return unix.Kill(a.pid, unix.SIGKILL) },
		"tracer":   func(a *Arrival) error { return unix.Shutdown(a.fd, unix.SHUT_RDWR) },
		"in order": func(a *Arrival) error { return a.Close() },
	} {
		t.Run(name+", held", func(t *testing.T) {
			a, path := begun(t)
			child := testutil.Spawn(t, path)
			if _, err := a.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			if there, err := a.Next(); !there || err != nil {
				t.Fatalf("%v, %v", there, err)
			}
			if err := end(a); err != nil {
				t.Error(err)
			}
			complete(t, child)
			if err := a.Release(); name == "holder" && !errors.Is(err, ErrGone) {
				t.Errorf("let go without a holder: %v", err)
			}
			_ = a.Close()
		})
	}
}

// Signals that arrive while the process is held are delivered when it is released, except stops
// that were undone.
func TestSignalsWhileHeld(t *testing.T) {
	for name, test := range map[string]struct {
		signals []unix.Signal
		code    int
		stops   bool
	}{
		"stop":          {[]unix.Signal{unix.SIGSTOP}, 0, true},
		"stop and back": {[]unix.Signal{unix.SIGSTOP, unix.SIGCONT}, 0, false},
		"end":           {[]unix.Signal{unix.SIGTERM}, 143, false},
		"kill":          {[]unix.Signal{unix.SIGKILL}, 137, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, path := begun(t)
			child := testutil.Spawn(t, path)
			if _, err := a.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, sig := range test.signals {
				send(t, child.PID, sig)
			}
			_, _ = a.Next() // it may have ended
			if err := a.Release(); err != nil {
				t.Error(err)
			}
			if test.stops {
				stops(t, child.PID)
				send(t, child.PID, unix.SIGCONT)
			}
			if code := child.Wait(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
