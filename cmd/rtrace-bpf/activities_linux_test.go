package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// TestSwapSwitchesAreWhole runs the program on the first processor only. There, a thread
// gets the processor as often as it leaves it, with at most one exception in a hundred: one
// kernel does not pass its tracepoint when some of its own tasks leave a processor, among
// them the idle task of the second processor (docs/formats/swap.md).
func TestSwapSwitchesAreWhole(t *testing.T) {
	child := waiting(t, "activity", append(activityArgs, "pinned")...)
	r := start(t, child, allActivity...)
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	all := deeds(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID)), child.PID)
	threads := 0
	for line := range strings.Lines(string(child.Output())) {
		var tid int
		var switches, cpu, runs uint64
		if n, _ := fmt.Sscanf(line, "thread %d %d %d %d", &tid, &switches, &cpu, &runs); n != 4 {
			continue
		}
		threads++
		if missing := checkSwitches(t, all[tid], switches, runs); missing > 2+countOf(all[tid], wire.ContextSwitchEntry)/100 {
			t.Errorf("the thread leaves its processor %d times without having got it", missing)
		}
	}
	if threads != 3 {
		t.Errorf("%d threads, want 3", threads)
	}
}

// TestSwapActivityOfSeveral checks that the trace of each of several processes contains its
// own activity and nothing else.
func TestSwapActivityOfSeveral(t *testing.T) {
	testutil.Build(t, "activity")
	testutil.Build(t, "fileuse")
	children := []*testutil.Child{waiting(t, "activity", activityArgs...), waiting(t, "activity", activityArgs...)}
	users := waiting(t, "fileuse", t.TempDir())
	r := startOn(t, append([]string{"--swap-files", "-p", list(append(children, users)...)}, allActivity...)...)
	for _, child := range append(children, users) {
		child.Go()
	}
	for _, child := range append(children, users) {
		child.Succeed()
	}
	r.ends(cli.OK)
	for _, child := range children {
		checkActivity(t, child, r.path(child)+".swap")
	}
	compareAccesses(t, users, r.path(users)+".swap")
}

// The capabilities that the command names suffice to record all activity.
func TestSwapActivityUnprivileged(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.Build(t, "activity")
	testutil.Build(t, "fileuse")
	var has []uintptr
	for {
		child, users := waiting(t, "activity", activityArgs...), waiting(t, "fileuse", t.TempDir())
		args := append([]string{"--swap-files", "-p", list(child, users), "--ready-file", "ready", "-b", "0"}, allActivity...)
		cmd, dir := unprivileged(t, has, args...)
		r := &running{Child: testutil.Start(t, cmd), t: t, dir: dir}
		recorded := testutil.FileOrEnd(t, filepath.Join(dir, "ready"), r.Child)
		child.Go()
		users.Go()
		child.Succeed()
		users.Succeed()
		if recorded {
			r.ends(cli.OK)
			checkActivity(t, child, r.path(child)+".swap")
			compareAccesses(t, users, r.path(users)+".swap")
			break
		}
		r.ends(cli.Failed)
		lacks := lacking(t, r.Stderr())
		t.Logf("with %d capabilities: %s", len(has), r.Stderr())
		for _, c := range lacks {
			if slices.Contains(has, c) {
				t.Fatalf("it has what it asks for: %s", r.Stderr())
			}
		}
		has = append(has, lacks...)
	}
	t.Logf("enough: %d", has)
}

// TestSwapActivityInPauses checks that pauses for --max-rate leave out calls of the
// allocator, but no other activity of the process.
func TestSwapActivityInPauses(t *testing.T) {
	const rounds = 300
	child := waiting(t, "paced", fmt.Sprint(rounds), "5000")
	r := start(t, child, "--format", "swap", "--max-rate", "1000", "--swap-syscalls", "descriptor")
	child.Go()
	child.Succeed()
	r.ends(cli.Incomplete)
	r.says("the recording was paused ")
	r.says("lost: 0")
	path := filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID))
	calls, paused := 0, uint64(0)
	for _, rec := range load(t, path) {
		switch rec.Kind {
		case trace.KindCall:
			calls++
		case trace.KindLost:
			paused++
		}
	}
	if paused == 0 || calls == 0 || calls > rounds*5000 {
		t.Fatalf("%d pauses, and %d of %d calls", paused, calls, 2*rounds*5000)
	}
	begun, ended := 0, 0
	for _, d := range deeds(t, path, child.PID)[child.PID] {
		if d.Function != "lseek" {
			continue
		}
		switch d.id {
		case wire.SyscallEntry:
			if want := fmt.Sprintf("d:-1 x:%d d:0", begun); d.Args != want {
				t.Fatalf("lseek %d is %q, want %q", begun, d.Args, want)
			}
			begun++
		case wire.SyscallExit:
			ended++
		}
	}
	if begun != rounds || ended != rounds {
		t.Errorf("%d calls of lseek begin and %d end, want %d", begun, ended, rounds)
	}
}
