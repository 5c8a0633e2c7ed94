package family

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
)

// Programs that a holder could disturb behave as without tracing.
func TestHarmless(t *testing.T) {
	for _, p := range []struct {
		name   string
		rounds string
		hows   []string
	}{
		{"harmless", "200", []string{"badalloc", "handler", "exceptions", "fibers", "altstack", "jumps", "signals", "cancel"}},
		{"harmless_ends", "20", []string{"exit", "main", "vfork", "fork", "spawn", "idle", "limits"}},
	} {
		for _, how := range p.hows {
			t.Run(how, func(t *testing.T) {
				program := testutil.Build(t, p.name)
				alone := starts(t, program, how, p.rounds)
				alone.Go()
				code, want := alone.Wait(), string(alone.Output())
				child := starts(t, program, how, p.rounds)
				f := New(children())
				defer f.Close()
				if err := f.Follow(child.pid); err != nil {
					t.Fatal(err)
				}
				child.Go()
				for e := range f.Events() {
					if e.Kind == Gone && e.Left == 0 {
						break
					}
					f.Go(e.PID)
				}
				if got := child.Wait(); got != code || string(child.Output()) != want {
					t.Errorf("it ends with %d, alone with %d; it prints %q, alone %q", got, code, child.Output(), want)
				}
			})
		}
	}
}

// A process that is stopped as a job stays so, and continues when it gets SIGCONT.
func TestFollowStopped(t *testing.T) {
	child := waits(t, "fork")
	kill := func(sig unix.Signal) {
		t.Helper()
		if err := unix.Kill(child.pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	state := func() proc.State {
		t.Helper()
		status, err := proc.ReadStatus(child.pid)
		if err != nil {
			t.Fatal(err)
		}
		return status.State
	}
	kill(unix.SIGSTOP)
	for state() != 'T' {
		runtime.Gosched()
	}
	f := New(children())
	defer f.Close()
	if err := f.Follow(child.pid); err != nil {
		t.Fatal(err)
	}
	kill(unix.SIGUSR1) // the signal ends the process, but not while it is stopped
	f.do(f.look)
	if s := state(); s != 'T' && s != 't' {
		t.Errorf("it is not stopped but in state %c", s)
	}
	kill(unix.SIGCONT)
	if e := <-f.Events(); e.Kind != Gone || e.Left != 0 {
		t.Errorf("%+v", e)
	}
	if code := child.Wait(); code != 128+int(unix.SIGUSR1) {
		t.Errorf("exit code %d", code)
	}
}
