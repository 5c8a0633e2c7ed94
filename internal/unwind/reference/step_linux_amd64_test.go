package reference

import (
	"cmp"
	"debug/elf"
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// called is a call that has not returned: the place of the return address on the stack, and the
// address.
type called struct{ slot, address uint64 }

// stepper single-steps a program and tracks the open calls by what instructions do to the stack
// pointer.
type stepper struct {
	*process
	options Options
	machine *machine
	regs    Registers
	open    []called
	steps   int
}

// startStepping starts a program that this thread traces and runs it to its first breakpoint.
func startStepping(t *testing.T, o Options, args ...string) *stepper {
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
	// Do not use child.Wait: it would consume the stops of the process.
	t.Cleanup(func() {
		// The process may have ended already.
		_ = unix.Kill(pid, unix.SIGKILL)
		var status unix.WaitStatus
		for !status.Exited() && !status.Signaled() {
			if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil && err != unix.EINTR {
				break
			}
		}
		runtime.UnlockOSThread()
	})
	s := &stepper{options: o, machine: machines[o.Machine]}
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
	s.regs = registers(t, pid, o.Machine)
	return s
}

// wait waits for the next stop and returns its signal, or 0 at the end.
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

// step executes one instruction, or delivers a signal. It returns false at a breakpoint.
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
		return got, true // to be delivered; no instruction was executed
	}
	s.steps++
	before := s.regs
	s.regs = registers(s.t, s.pid, s.options.Machine)
	s.note(&before, signal != 0)
	if op, ok := s.Word(s.pc()); ok && op&0xff == 0xcc {
		return 0, false
	}
	return 0, true
}

func (s *stepper) sp() uint64 { return s.regs.R[s.machine.sp] }
func (s *stepper) pc() uint64 { return s.regs.R[s.machine.pc] }

// address returns the address that is saved at a place of the stack.
func (s *stepper) address(slot uint64) (uint64, bool) { return narrow(s, slot, s.machine.word) }

// note records what the step from before did to the stack.
func (s *stepper) note(before *Registers, delivered bool) {
	sp, pc, top := s.sp(), before.R[s.machine.pc], before.R[s.machine.sp]
	if delivered {
		// The interrupted function continues when the handler has returned.
		restorer, _ := s.address(sp)
		s.open = append(s.open, called{top - 1, pc}, called{sp, restorer})
		return
	}
	for n := len(s.open); n > 0 && s.over(s.open[n-1]); n-- {
		s.open = s.open[:n-1]
	}
	if sp != top-uint64(s.machine.word) {
		return
	}
	// A call saves the address after itself, and execution continues elsewhere.
	if v, ok := s.address(sp); ok && v-pc >= 2 && v-pc <= 8 && v != s.pc() {
		s.open = append(s.open, called{sp, v})
	}
}

// over reports whether a call has returned or was left in another way: the stack pointer is
// above its return address. vfork, which only pops its return address for a while, has not
// returned.
func (s *stepper) over(c called) bool {
	sp, pc := s.sp(), s.pc()
	popped := sp == c.slot+uint64(s.machine.word) && pc != c.address && s.open[len(s.open)-1] == c
	return c.slot < sp && !popped
}

// TestEveryInstruction unwinds after each instruction that a program executes, in its own code
// and in the libraries, exactly and with tables. On i386 some stages are left out: the time,
// because the vDSO has no rules for it; std::sort, because the rules of memmove in glibc 2.36
// are wrong there; and the destructor, because _Unwind_Resume overwrites its saved frame
// pointer, through which its caller's frame would be found.
func TestEveryInstruction(t *testing.T) {
	tests := []struct {
		path  string
		flags []string
		i386  string // another path there, see below
	}{
		{path: "asgqfbo", flags: []string{"-Wl,-z,lazy"}, i386: "aqfboi"},
		{path: "asgqfbo", flags: []string{"-O0"}, i386: "aqfboi"},
		{path: "rrd", flags: []string{"-Wl,-z,now"}, i386: "rrc"},
		{path: "cqr", flags: []string{"-Os"}},
		{path: "kapui", flags: []string{"-Wl,-z,lazy"}},
	}
	for _, target := range targets() {
		for _, test := range tests {
			if target.machine == elf.EM_386 {
				test.path = cmp.Or(test.i386, test.path)
			}
			t.Run(target.name+test.path+test.flags[0], func(t *testing.T) {
				target.need(t)
				prog := build(t, "nest.cpp", append(test.flags, target.flags...)...)
				runtime.LockOSThread()
				s := startStepping(t, target.options(), prog, test.path, "step")
				outer := Unwind(s.regs, s, s, s.options)
				if outer.End != Complete {
					t.Fatalf("at the first breakpoint: %+v", outer)
				}
				s.compare(outer.Frames[1:])
			})
		}
	}
}

// compare steps to the next breakpoint and compares stacks with the open calls.
func (s *stepper) compare(outer []uint64) {
	s.t.Helper()
	seen := map[[2]uint64]bool{}
	checked, lost, short := 0, 0, 0
	var signal unix.Signal
	for more := true; more; {
		if signal, more = s.step(signal); signal == unix.SIGCHLD {
			signal = 0 // it would be ignored
		}
		want := s.expected(outer)
		at := [2]uint64{want[0], want[1]}
		switch {
		case seen[at] && s.steps%64 != 0: // this place was checked before
			continue
		case !s.intact() || s.misdescribed() || !s.described(want):
			lost++
			continue
		}
		seen[at] = true
		checked++
		got := Unwind(s.regs, s, s, s.options)
		if got.End != Complete || !slices.Equal(got.Frames, want) {
			s.t.Fatalf("step %d: %v %v\n got: %s\nwant: %s", s.steps, got.End, got.Err, s.text(got.Frames), s.text(want))
		}
		// Tables may not lead as far, but must not lead elsewhere.
		byTables, whole := s.walk(s.regs, s.machine)
		if n := len(byTables); whole != (n == len(want)) || n > len(want) || !slices.Equal(byTables, want[:n]) {
			s.t.Fatalf("step %d: by tables, whole %v\n got: %s\nwant: %s", s.steps, whole, s.text(byTables), s.text(want))
		}
		if !whole {
			short++
		}
	}
	few := checked / 50
	if s.options.Machine == elf.EM_X86_64 {
		few = checked * 2 / 3 // ld.so keeps the frame in rbx where it binds functions, which tables do not follow
	}
	if checked < 500 || lost > checked/10 || short > few {
		s.t.Errorf("%d stacks checked, %d lost, %d not whole by tables", checked, lost, short)
	}
	s.t.Logf("%d instructions, %d stacks checked, %d lost, %d not whole by tables", s.steps, checked, lost, short)
}

// text returns addresses with the names of their functions.
func (s *stepper) text(pcs []uint64) (text string) {
	for _, pc := range pcs {
		text += "\n\t" + s.name(pc)
	}
	return text
}
