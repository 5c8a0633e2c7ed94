package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// counted returns how many events are of a kind.
func counted(events []wire.Event, kind wire.Kind) int {
	n := 0
	for i := range events {
		if events[i].Kind == kind {
			n++
		}
	}
	return n
}

// The file has its trailer however the recording ends.
func TestMTRCEnds(t *testing.T) {
	both := func(t *testing.T, r *running, child *testutil.Child) {
		// The tracer is stopped, so that it then gets all signals at once, with a full ring
		// to read.
		r.Signal(syscall.SIGSTOP)
		child.Go()
		child.Succeed()
		r.Signal(syscall.SIGINT)
		r.Signal(syscall.SIGTERM)
		r.Signal(syscall.SIGCONT)
	}
	signal := func(sig os.Signal) func(t *testing.T, r *running, child *testutil.Child) {
		return func(_ *testing.T, r *running, child *testutil.Child) {
			child.Go()
			r.Signal(sig)
		}
	}
	sweep := testutil.Sweep(t)
	for name, test := range map[string]struct {
		program []string
		args    []string
		end     func(t *testing.T, r *running, child *testutil.Child)
		code    cli.ExitCode
		events  int  // the fewest allocations
		atOnce  bool // the test also runs with a file that is written at once
	}{
		"Ctrl-C":        {[]string{"loop", "1"}, ample, signal(syscall.SIGINT), cli.OK, 0, false},
		"SIGTERM":       {[]string{"loop", "1"}, ample, signal(syscall.SIGTERM), cli.OK, 0, true},
		"second signal": {[]string{"loop", "1", "400000"}, ample, both, cli.Failed, 0, true},
		"duration": {[]string{"loop", "1"}, append(ample, "--duration", "50ms"), func(_ *testing.T, _ *running, child *testutil.Child) {
			child.Go()
		}, cli.OK, 0, false},
		"no events": {[]string{"loop", "1"}, []string{"--duration", "1ms"}, func(*testing.T, *running, *testutil.Child) {}, cli.OK, 0, false},
		"exit": {[]string{"alloc", "1", "10"}, nil, func(_ *testing.T, _ *running, child *testutil.Child) {
			child.Go()
			child.Succeed()
		}, cli.OK, 21, false},
		"killed": {[]string{"loop", "1"}, ample, func(_ *testing.T, _ *running, child *testutil.Child) {
			child.Go()
			child.Signal(syscall.SIGKILL)
		}, cli.OK, 0, false},
		"exec": {[]string{"exec", "10", rtrace(t), "--version"}, nil, func(_ *testing.T, _ *running, child *testutil.Child) {
			child.Go()
			child.Succeed()
		}, cli.Incomplete, 10, false},
		"strict": {[]string{"loop", "1", "400000"}, []string{"--strict", "--ring-size", "64k"}, func(_ *testing.T, r *running, child *testutil.Child) {
			r.Signal(syscall.SIGSTOP)
			child.Go()
			child.Succeed()
			r.Signal(syscall.SIGCONT)
		}, cli.Failed, 0, true},
	} {
		for _, names := range []string{"on", "off"} { // on: records are kept until the end; off: written at once
			if names == "off" && !test.atOnce || names == "on" && test.atOnce && !sweep {
				continue
			}
			t.Run(name+", names "+names, func(t *testing.T) {
				child := waiting(t, test.program[0], test.program[1:]...)
				r := start(t, child, append([]string{"--format", "mtrc", "--mtrc-names", names}, test.args...)...)
				test.end(t, r, child)
				r.ends(test.code)
				_, events := scan(t, r.mtrcPath())
				if n := counted(events, wire.Alloc); n < test.events {
					t.Errorf("%d allocations, want at least %d", n, test.events)
				}
			})
		}
	}
}

// The tracer itself fails, because it cannot create the ready file.
func TestMTRCOwnError(t *testing.T) {
	child := waiting(t, "loop", "1")
	dir := t.TempDir()
	got := finish(t, command(t, "-p", fmt.Sprint(child.PID), "-o", dir, "--format", "mtrc", "--ready-file", filepath.Join(dir, "no", "ready")))
	if got.code != int(cli.Failed) || !strings.Contains(got.stderr, "create ready file") {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	}
	scan(t, filepath.Join(dir, fmt.Sprintf("rtrace-raw-%d-0.mtrc", child.PID)))
}

// If the spool fills the disk, the trace has as many records as there is room for, and its
// trailer.
func TestMTRCDiskFull(t *testing.T) {
	child := waiting(t, "loop", "1")
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=3m"); err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	defer func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	}()
	path := filepath.Join(disk, "trace")
	r := start(t, child, "-o", path, "--format", "mtrc", "--ring-size", "64M")
	child.Go()
	r.ends(cli.Failed)
	r.says("write temporary file in " + disk + ": no space left on device")
	r.says("the disk is full: " + path + " has the first ")
	header, events := scan(t, path)
	if n := counted(events, wire.Alloc); n < 20000 || header.Words != 8 {
		t.Errorf("%d allocations in %v", n, header)
	}
	if info, err := os.Stat(path); err != nil || info.Size() < 500<<10 {
		t.Errorf("%d bytes in the file, %v", info.Size(), err)
	}
	child.Go()
	child.Succeed()
}
