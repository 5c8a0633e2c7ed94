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

// TestLikeBacktrace compares with what a program finds itself, by libgcc.
func TestLikeBacktrace(t *testing.T) {
	for _, target := range targets() {
		prog := build(t, "nest.cpp", target.flags...)
		paths := []string{"a", "afsqrbdoc", "ikuv", "tkirks"}
		if target.machine == elf.EM_386 {
			// Elsewhere the rules of glibc for the end of a context begin at the
			// very address that is returned to, and not before.
			paths = append(paths, "kimau")
		}
		for _, path := range paths {
			t.Run(target.name+path, func(t *testing.T) { likeBacktrace(t, &target, prog, path) })
		}
	}
}

func likeBacktrace(t *testing.T, target *target, prog, path string) {
	target.need(t)
	said := filepath.Join(t.TempDir(), "said")
	out, err := os.Create(said)
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
	frames := gdbFrames(t, c.PID, thread, o.Machine) // only for the registers of the first
	for n := 0; !waits(t, c.PID, tid, machines[o.Machine], frames[0]); n++ {
		if n == 5 {
			t.Fatalf("thread %d does not stand still", tid)
		}
		frames = gdbFrames(t, c.PID, thread, o.Machine)
	}
	p := open(t, c.PID)
	got := Unwind(frames[0], p, p, o)
	data, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	var want []uint64
	for ; len(data) >= 8; data = data[8:] {
		want = append(want, binary.NativeEndian.Uint64(data))
	}
	// The innermost function was elsewhere then, in the one that says it.
	const inner = 2
	if len(want) < inner+3 {
		t.Fatalf("backtrace says %#x", want)
	}
	want = want[inner:]
	if n := len(got.Frames) - len(want); got.End != Complete || n < 1 || !slices.Equal(got.Frames[n:], want) {
		t.Errorf("%#x, %v, backtrace says %#x", got.Frames, got.End, want)
	}
}
