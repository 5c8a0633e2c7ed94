//go:build amd64 || arm64

package reference

import (
	"os/exec"
	"slices"
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
)

// TestPython unwinds an interpreter without frame pointers, in a recursion and in callbacks
// from C.
func TestPython(t *testing.T) {
	c := testutil.Start(t, exec.Command("/usr/bin/python3", "-c", `
import os, functools
def wait(*_):
    os.write(3, b"ready\n")
    os.read(4, 1)
    os._exit(0)
def nest(n):
    if n == 0:
        sorted([2, 1], key=functools.cmp_to_key(wait))
    else:
        list(map(nest, [n - 1]))
nest(20)
`))
	c.Ready()
	if got := compareWithGDB(t, c.PID, c.PID, 1, native()); len(got) < 40 {
		t.Errorf("%d frames, want 40 at least", len(got))
	}
}

// TestWithoutTables unwinds through code that has a frame pointer and no tables.
func TestWithoutTables(t *testing.T) {
	for _, target := range targets() {
		t.Run(target.name, func(t *testing.T) {
			target.need(t)
			c := testutil.Spawn(t, build(t, "nest.cpp", target.flags...), "ajsj")
			c.Ready()
			o := target.options()
			o.FramePointer = true
			regs := compareWithGDB(t, c.PID, c.PID, 1, o)[0]
			p := open(t, c.PID)
			if s := Unwind(regs, p, p, o); s.End != Complete || !s.FramePointer {
				t.Errorf("%v, frame pointer %v", s.End, s.FramePointer)
			}
			o.FramePointer = false
			if s := Unwind(regs, p, p, o); s.End != NoRule || s.FramePointer {
				t.Errorf("%v, frame pointer %v without leave", s.End, s.FramePointer)
			}
		})
	}
}

// TestCopiedStack unwinds a copy of a stack, whole and truncated at each place.
func TestCopiedStack(t *testing.T) {
	for _, target := range targets() {
		t.Run(target.name, func(t *testing.T) {
			target.need(t)
			copiedStack(t, &target)
		})
	}
}

func copiedStack(t *testing.T, target *target) {
	c := testutil.Spawn(t, build(t, "nest.cpp", target.flags...), "asqrudbi")
	c.Ready()
	p, o := open(t, c.PID), target.options()
	live := compareWithGDB(t, c.PID, c.PID, 1, o)
	regs, m := live[0], machines[o.Machine]
	sp := regs.R[m.sp]
	raw := p.stack(sp)
	var want []uint64
	for i := range live {
		want = append(want, live[i].R[m.pc])
	}
	used := live[len(live)-1].R[m.sp] - sp
	lengths := map[int]bool{}
	for n := uint64(0); n <= used; n += uint64(m.word) {
		part := Raw{Addr: sp, Data: raw.Data[:n]}
		s := Unwind(regs, part, p.space, o)
		lengths[len(s.Frames)] = true
		whole := len(s.Frames) == len(want)
		if !slices.Equal(s.Frames, want[:len(s.Frames)]) || whole != (s.End == Complete) || !whole && s.End != Unreadable {
			t.Fatalf("%d bytes: %#x, %v: %v; want the begin of %#x", n, s.Frames, s.End, s.Err, want)
		}
	}
	if len(lengths) < len(want)-2 || !lengths[len(want)] {
		t.Errorf("stacks of %v frames, want all up to %d", lengths, len(want))
	}
}

// BenchmarkUnwind unwinds a copy of a stack of a C++ program.
func BenchmarkUnwind(b *testing.B) {
	c := testutil.Spawn(b, build(b, "nest.cpp"), "asqrdbasqrdb")
	c.Ready()
	p, o := open(b, c.PID), native()
	regs := gdbFrames(b, c.PID, 1, o.Machine)[0]
	raw := p.stack(regs.R[machines[o.Machine].sp])
	frames := 0
	b.ReportAllocs()
	for b.Loop() {
		s := Unwind(regs, raw, p.space, o)
		if s.End != Complete {
			b.Fatal(s.End, s.Err)
		}
		frames += len(s.Frames)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
}

// stack copies the memory from sp up to the end of the mapping.
func (p *process) stack(sp uint64) Raw {
	p.t.Helper()
	maps, err := proc.Maps(p.pid)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, m := range maps {
		if sp >= m.Start && sp < m.End {
			raw := Raw{Addr: sp, Data: make([]byte, m.End-sp)}
			if _, err := p.mem.ReadAt(raw.Data, int64(sp)); err != nil {
				p.t.Fatal(err)
			}
			return raw
		}
	}
	p.t.Fatalf("nothing is mapped at %#x", sp)
	return Raw{}
}
