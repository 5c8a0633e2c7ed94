//go:build amd64 || arm64

package reference

import (
	"debug/elf"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// gdbFrames returns the registers of all frames of a thread as gdb finds them. thread counts
// from 1 in the order in which the threads were started.
func gdbFrames(t testing.TB, pid, thread int, machine elf.Machine) []Registers {
	t.Helper()
	names := registerNames[machine]
	if scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); os.Getuid() != 0 && len(scope) > 0 && scope[0] != '0' {
		t.Skip("SKIPPED: gdb may not look at a process that it did not start (run as root)")
	}
	out, err := exec.Command("gdb", "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
		"-p", strconv.Itoa(pid), "-ex", "set backtrace past-main on", "-ex", "set backtrace limit 600",
		"-ex", "thread "+strconv.Itoa(thread),
		"-ex", "frame apply all -q info registers "+strings.Join(names, " ")).Output()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, out)
	}
	var all []Registers
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n := slices.Index(names, f[0])
		if n < 0 {
			continue
		}
		if n == 0 { // each frame begins with it
			all = append(all, Registers{})
		}
		if v, err := strconv.ParseUint(strings.TrimPrefix(f[1], "0x"), 16, 64); err == nil {
			all[len(all)-1].Set(uint64(n), v)
		}
	}
	if len(all) == 0 {
		t.Fatalf("gdb has no frames:\n%s", out)
	}
	// With debugging information, gdb shows frames that are not on the stack: those of inlined
	// functions and of functions that ended in a jump. They have the stack pointer of the next
	// frame.
	sp := machines[machine].sp
	onStack := all[:0]
	for i := range all {
		if i+1 == len(all) || all[i].R[sp] != all[i+1].R[sp] {
			onStack = append(onStack, all[i])
		}
	}
	return onStack
}

// frames unwinds like Unwind and returns the registers of all frames.
func frames(regs Registers, mem Memory, mods Modules, o Options) (all []Registers, end End, err error) {
	f := frame{regs: regs, mem: mem, mods: mods, machine: machines[o.Machine], options: &o, exact: o.Interrupted}
	for end == going {
		all = append(all, f.regs)
		f.number = len(all) - 1
		end, err = f.step()
	}
	return all, end, err
}

// compareWithGDB unwinds a waiting thread and compares all registers of all frames with gdb's.
func compareWithGDB(t *testing.T, pid, tid, thread int, o Options) []Registers {
	t.Helper()
	p, m := open(t, pid), machines[o.Machine]
	want := gdbFrames(t, pid, thread, o.Machine)
	// The thread that gdb stopped may not have been waiting yet.
	for n := 0; !waits(t, pid, tid, m, want[0]); n++ {
		if n == 5 {
			t.Fatalf("thread %d does not stand still at %#x", tid, want[0].R)
		}
		want = gdbFrames(t, pid, thread, o.Machine)
	}
	regs := want[0]
	got, end, err := frames(regs, p, p, o)
	if end != Complete {
		t.Errorf("ended after %d frames: %v: %v", len(got), end, err)
	}
	for i := range min(len(got), len(want)) {
		for n, name := range registerNames[o.Machine] {
			v, ok := got[i].Get(uint64(n))
			if w, known := want[i].Get(uint64(n)); ok && known && v != w {
				t.Errorf("frame %d at %#x: %s is %#x, gdb has %#x", i, want[i].R[m.pc], name, v, w)
			}
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d frames, gdb has %d", len(got), len(want))
	}
	if t.Failed() {
		for i := range want {
			t.Logf("gdb #%d %#x sp %#x", i, want[i].R[m.pc], want[i].R[m.sp])
		}
	}
	stack := Unwind(regs, p, p, o)
	if stack.End != end || len(stack.Frames) != len(got) {
		t.Errorf("Unwind: %d frames, %v; want %d, %v", len(stack.Frames), stack.End, len(got), end)
	}
	return got
}

// newest returns the thread that was started last.
func newest(t *testing.T, pid int) (tid, number int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			tid = max(tid, n)
		}
	}
	return tid, len(entries)
}

func TestLikeGDB(t *testing.T) {
	tests := []struct {
		path   string
		frames int // at least
	}{
		{"a", 6},
		{"b", 7},
		{"c", 6},
		{"d", 9},
		{"f", 7},
		{"i", 9},
		{"k", 9},
		{"o", 7},
		{"q", 8},
		{"r", 6},
		{"s", 7},
		{"t", 6},
		{"u", 9},
		{"v", 8},
		{"kvukvu", 25},
		{"afsqrbdogckv", 40},
		{"rrrrfrdkra", 30},
		{"astdkq", 18},
		{"ikikui", 25},
	}
	for _, target := range targets() {
		prog := build(t, "nest.cpp", target.flags...)
		for _, test := range tests {
			t.Run(target.name+test.path, func(t *testing.T) {
				target.need(t)
				c := testutil.Spawn(t, prog, test.path)
				c.Ready()
				tid, number := newest(t, c.PID)
				if got := compareWithGDB(t, c.PID, tid, number, target.options()); len(got) < test.frames {
					t.Errorf("%d frames, want %d at least", len(got), test.frames)
				}
			})
		}
	}
}
