package tracer

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// pythonScript nests calls of Python through functions written in C. Innermost, one place
// in the code calls malloc, with a unique size, and then read, which blocks until the
// test is done.
const pythonScript = `import ctypes, functools, os, re
libc = ctypes.CDLL(None)
room = ctypes.create_string_buffer(1)
def innermost(calls):
    for function, arguments in calls:
        function(*arguments)
def nest(n, calls):
    if n == 0:
        innermost(calls)
    elif n % 4 == 0:
        list(map(lambda _: nest(n - 1, calls), "x"))
    elif n % 4 == 1:
        sorted("x", key=lambda _: nest(n - 1, calls) or 1)
    elif n % 4 == 2:
        re.sub("x", lambda _: nest(n - 1, calls) or "y", "x")
    else:
        functools.reduce(lambda *_: nest(n - 1, calls), "xy")
os.write(3, b"ready\n"); os.read(4, 1)
for i in range(3):
    nest(4 + 5 * i, [(libc.malloc, (7000000 + i, room, 1)), (libc.read, (4, room, 1))])
`

// gdbScript prints the return addresses of a stack, without inlined functions.
const gdbScript = `import gdb
frame = gdb.newest_frame()
while frame is not None:
    if frame.type() != gdb.INLINE_FRAME:
        print("frame", hex(frame.pc()))
    frame = frame.older()
`

// debugged returns the stack of a process as gdb finds it, innermost first.
func debugged(t *testing.T, pid int) []uint64 {
	t.Helper()
	script := filepath.Join(t.TempDir(), "frames.py")
	if err := os.WriteFile(script, []byte(gdbScript), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(installed(t, "gdb"), "-nx", "-batch", "-iex", "set debuginfod enabled off",
		"-ex", "set backtrace past-main on", "-ex", "set backtrace past-entry on",
		"-p", strconv.Itoa(pid), "-x", script).CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, out)
	}
	var frames []uint64
	for line := range strings.Lines(string(out)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "frame 0x"); ok {
			addr, err := strconv.ParseUint(text, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			frames = append(frames, addr)
		}
	}
	if len(frames) == 0 {
		t.Fatalf("gdb finds no frames:\n%s", out)
	}
	return frames
}

// Deep stacks of Python are complete, and the same as gdb finds.
func TestStacksOfPythonAgainstGDB(t *testing.T) {
	testutil.NeedBPF(t)
	installed(t, "gdb")
	child := testutil.Start(t, exec.Command(installed(t, "/usr/bin/python3"), "-c", pythonScript))
	child.Ready()
	stacks := make(chan trace.Stack, 3)
	r := watched(t, child.PID, byTables(plan.UnwindEH, func(o *plan.Options) { o.Depth = plan.MaxDepth }), func(_ *recording, rec *trace.Record) {
		if rec.Kind == trace.KindCall && rec.Call.Size >= 7000000 && rec.Call.Size < 7000003 {
			stacks <- rec.Clone().Call.Stack
		}
	})
	child.Go()
	type sample struct{ traced, found []uint64 }
	var samples []sample
	for range cap(stacks) {
		select {
		case s := <-stacks:
			if s.End != trace.StackComplete || s.FramePointer || len(s.Frames) < 20 {
				t.Errorf("stack of %d frames is %s %s, frame pointer used: %v", len(s.Frames), s.End, s.Reason, s.FramePointer)
			}
			samples = append(samples, sample{s.Frames, below(t, child.PID, s.Frames[0])})
			child.Go() // out of read
		case <-child.Exited():
			t.Fatalf("python3 ended: %s", child.Stderr())
		}
	}
	child.Succeed()
	name := resolved(r.end())
	same := func(a, b uint64) bool { return a == b }
	for _, s := range samples {
		if diff := testutil.StackDiff(s.traced, s.found, same, name); diff != "" {
			t.Errorf("gdb (logged) finds another stack: %s", diff)
		}
		t.Logf("%d frames", len(s.found))
	}
}

// below returns gdb's stack from the frame with the return address caller outward, once
// the process blocks there: at first it may be on the way from malloc to read.
func below(t *testing.T, pid int, caller uint64) []uint64 {
	t.Helper()
	for range 20 {
		found := debugged(t, pid)
		if i := slices.Index(found, caller); i > 0 {
			return found[i:]
		}
	}
	t.Errorf("gdb does not find the caller %#x", caller)
	return nil
}
