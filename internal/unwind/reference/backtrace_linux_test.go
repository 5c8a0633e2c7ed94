//go:build amd64 || arm64

package reference

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// TestLikeBacktrace compares stacks with what a program finds itself with libgcc.
func TestLikeBacktrace(t *testing.T) {
	for _, target := range targets() {
		prog := build(t, "nest.cpp", target.flags...)
		paths := []string{"a", "afsqrbdoc", "ikuv", "tkirks"}
		if target.machine == elf.EM_386 {
			// On other machines the rules of glibc for the end of a context begin exactly at
			// the return address and not one byte before.
			paths = append(paths, "kimau")
		}
		for _, path := range paths {
			t.Run(target.name+path, func(t *testing.T) { likeBacktrace(t, &target, prog, path) })
		}
	}
}

func likeBacktrace(t *testing.T, target *target, prog, path string) {
	target.need(t)
	output := filepath.Join(t.TempDir(), "backtrace")
	out, err := os.Create(output)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(prog, path, "backtrace")
	cmd.Stdout = out
	c := testutil.Start(t, cmd)
	c.Ready()
	tid, thread := newest(t, c.PID)
	o := target.options()
	frames := gdbFrames(t, c.PID, thread, o.Machine) // only for the registers of the first frame
	for n := 0; !waits(t, c.PID, tid, machines[o.Machine], frames[0]); n++ {
		if n == 5 {
			t.Fatalf("thread %d does not stand still", tid)
		}
		frames = gdbFrames(t, c.PID, thread, o.Machine)
	}
	p := open(t, c.PID)
	got := Unwind(frames[0], p, p, o)
	data, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	var want []uint64
	for ; len(data) >= 8; data = data[8:] {
		want = append(want, binary.NativeEndian.Uint64(data))
	}
	// The innermost function was then at a different place, in the one that prints the stack.
	const inner = 2
	if len(want) < inner+3 {
		t.Fatalf("backtrace found %#x", want)
	}
	want = want[inner:]
	if n := len(got.Frames) - len(want); got.End != Complete || n < 1 || !slices.Equal(got.Frames[n:], want) {
		t.Errorf("%#x, %v, backtrace found %#x", got.Frames, got.End, want)
	}
}
