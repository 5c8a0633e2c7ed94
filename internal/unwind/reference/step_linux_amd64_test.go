package reference

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// called is a call that has not returned: a place on the stack and the address
// that is to be gone on at.
type called struct{ slot, address uint64 }

// stepper steps through a program, one instruction at a time, and notes the
// calls that are open by what instructions do to the stack pointer.
type stepper struct {
	*process
	regs  Registers
	open  []called
	steps int
}

const (
	amd64SP = 7
	amd64PC = 16
)

// startStepping starts a program that is traced by this thread and lets it run
// to its first breakpoint.
func startStepping(t *testing.T, args ...string) *stepper {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	child, err := os.StartProcess(args[0], args, &os.ProcAttr{
		Files: []*os.File{null, null, null},
		Sys:   &unix.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGKILL},
	})
	if err != nil {
		t.Fatal(err)
	}
	pid := child.Pid
	// Never child.Wait: it would take the stops of the process for itself.
	t.Cleanup(func() {
		// It may have ended already.
		_ = unix.Kill(pid, unix.SIGKILL)
		var status unix.WaitStatus
		for !status.Exited() && !status.Signaled() {
			if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil && err != unix.EINTR {
				break
			}
		}
		runtime.UnlockOSThread()
	})
	s := &stepper{}
	s.process = &process{t: t, pid: pid}
	if sig := s.wait(); sig != unix.SIGTRAP {
		t.Fatalf("%v at the start of %s", sig, args[0])
	}
	if err := unix.PtraceCont(pid, 0); err != nil {
		t.Fatal(err)
	}
	if sig := s.wait(); sig != unix.SIGTRAP {
		t.Fatalf("%v before the first breakpoint", sig)
	}
	s.process = open(t, pid)
	s.regs = registers(t, pid)
	return s
}

// wait waits for the next stop and returns its signal, 0 at the end.
func (s *stepper) wait() unix.Signal {
	s.t.Helper()
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(s.pid, &status, unix.WALL, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if !status.Stopped() {
			return 0
		}
		return status.StopSignal()
	}
}

// step executes one instruction, or delivers a signal. It is false at a
// breakpoint.
func (s *stepper) step(signal unix.Signal) (unix.Signal, bool) {
	s.t.Helper()
	if _, _, err := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SINGLESTEP, uintptr(s.pid), 0, uintptr(signal), 0, 0); err != 0 {
		s.t.Fatal(err)
	}
	got := s.wait()
	if got != unix.SIGTRAP {
		if got == 0 {
			s.t.Fatalf("ended after %d steps", s.steps)
		}
		return got, true // to be delivered; nothing was executed
	}
	s.steps++
	before := s.regs
	s.regs = registers(s.t, s.pid)
	s.note(&before, signal != 0)
	if op, ok := s.Word(s.regs.R[amd64PC]); ok && op&0xff == 0xcc {
		return 0, false
	}
	return 0, true
}

// note notes what the step from before on did to the stack.
func (s *stepper) note(before *Registers, delivered bool) {
	sp, pc, top := s.regs.R[amd64SP], before.R[amd64PC], before.R[amd64SP]
	if delivered {
		// The interrupted function goes on when the handler has returned.
		restorer, _ := s.Word(sp)
		s.open = append(s.open, called{top - 1, pc}, called{sp, restorer})
		return
	}
	for n := len(s.open); n > 0 && s.over(s.open[n-1]); n-- {
		s.open = s.open[:n-1]
	}
	if sp != top-8 {
		return
	}
	// A call leaves the address behind it, which is where it is not now.
	if v, ok := s.Word(sp); ok && v-pc >= 2 && v-pc <= 8 && v != s.regs.R[amd64PC] {
		s.open = append(s.open, called{sp, v})
	}
}

// over says whether a call has returned, or was left otherwise: the stack
// pointer is above its return address. vfork, which only takes that one from
// the stack for a while, has not returned.
func (s *stepper) over(c called) bool {
	sp, pc := s.regs.R[amd64SP], s.regs.R[amd64PC]
	popped := sp == c.slot+8 && pc != c.address && s.open[len(s.open)-1] == c
	return c.slot < sp && !popped
}

// expected returns the stack as the open calls have it, in front of the frames
// that were there at first.
func (s *stepper) expected(outer []uint64) []uint64 {
	const ret = 0xc3
	sp, pc := s.regs.R[amd64SP], s.regs.R[amd64PC]
	all := []uint64{pc}
	op, _ := s.Word(pc)
	to, _ := s.Word(sp)
	if n := len(s.open); op&0xff == ret && n > 0 && s.open[n-1].slot != sp {
		all = append(all, to) // an exception's way to its handler
	}
	for _, c := range slices.Backward(s.open) {
		all = append(all, c.address)
	}
	return append(all, outer...)
}

// intact says whether all open calls' return addresses are where they were
// put. When an exception enters its handler, the unwinder of libgcc writes over
// its own: then nothing in the process says where it was called.
func (s *stepper) intact() bool {
	for _, c := range s.open {
		if v, ok := s.Word(c.slot); c.slot%8 == 0 && (!ok || v != c.address) {
			return false
		}
	}
	return true
}

// misdescribed says whether the last two instructions of a realigned function
// are next, lea -8(%r10), %rsp and ret. GCC's rule says that rbp is saved where
// rbp points to; here it was already restored.
func (s *stepper) misdescribed() bool {
	const lea = 0xf8628d49
	for _, at := range []uint64{s.regs.R[amd64PC], s.regs.R[amd64PC] - 4} {
		if op, _ := s.Word(at); uint32(op) == lea {
			return true
		}
	}
	return false
}

// TestEveryInstruction unwinds after each instruction that a program executes,
// in its own code and that of the libraries.
func TestEveryInstruction(t *testing.T) {
	tests := []struct {
		path  string
		flags []string
	}{
		{"asgqfbo", []string{"-Wl,-z,lazy"}},
		{"asgqfbo", []string{"-O0"}},
		{"rrd", []string{"-Wl,-z,now"}},
		{"cqr", []string{"-Os"}},
		{"kapu", []string{"-Wl,-z,lazy"}},
	}
	for _, test := range tests {
		t.Run(test.path+test.flags[0], func(t *testing.T) {
			prog := build(t, "nest.cpp", test.flags...)
			runtime.LockOSThread()
			s := startStepping(t, prog, test.path, "step")
			outer := Unwind(s.regs, s, s, native())
			if outer.End != Complete {
				t.Fatalf("at the first breakpoint: %+v", outer)
			}
			s.compare(outer.Frames[1:])
		})
	}
}

// compare steps to the next breakpoint and compares stacks with the open calls.
func (s *stepper) compare(outer []uint64) {
	s.t.Helper()
	seen := map[[2]uint64]bool{}
	checked, lost := 0, 0
	var signal unix.Signal
	for more := true; more; {
		if signal, more = s.step(signal); signal == unix.SIGCHLD {
			signal = 0 // it would be ignored
		}
		want := s.expected(outer)
		at := [2]uint64{want[0], want[1]}
		switch {
		case seen[at] && s.steps%64 != 0: // checked in this place before
			continue
		case !s.intact() || s.misdescribed():
			lost++
			continue
		}
		seen[at] = true
		checked++
		got := Unwind(s.regs, s, s, native())
		if got.End != Complete || !slices.Equal(got.Frames, want) {
			s.t.Fatalf("step %d: %v %v\n got: %s\nwant: %s", s.steps, got.End, got.Err, s.text(got.Frames), s.text(want))
		}
	}
	if checked < 500 || lost > checked/10 {
		s.t.Errorf("%d stacks checked, %d lost", checked, lost)
	}
	s.t.Logf("%d instructions, %d stacks checked, %d lost", s.steps, checked, lost)
}

// text is addresses with the names of their functions.
func (s *stepper) text(pcs []uint64) (text string) {
	for _, pc := range pcs {
		text += "\n\t" + s.name(pc)
	}
	return text
}
