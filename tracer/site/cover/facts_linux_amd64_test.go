package cover

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// stepper runs calls of one function instruction by instruction and compares what the
// interpretation knows before each of them with the registers and the stack.
type stepper struct {
	*process
	t       *testing.T
	graph   *graph
	at      *node // where the call is, or nil outside of the function
	sp      uint64
	args    [2]uint64
	regs    [registers]uint64 // at the entry
	claims  []claim
	facts   int
	claimed int
	seen    map[uint64]bool
	calls   int
}

// claim is a value that the interpretation claims will be returned.
type claim struct {
	pc    uint64
	at    location
	value uint64
}

// TestFacts checks all that is known at every instruction of the allocators' functions.
func TestFacts(t *testing.T) {
	program, err := compileCalls()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range here[:4] {
		t.Run(filepath.Base(path), func(t *testing.T) {
			l := installed(t, path)
			c := command{program: program, library: path}
			if path != here[0] {
				c.env = []string{"LD_PRELOAD=" + path}
			}
			for i, f := range functions {
				if entry, ok := l.exports[f.Name]; ok {
					f.Entry = entry
					t.Run(f.Name, func(t *testing.T) { stepFacts(t, l, c, f, 1<<i) })
				}
			}
		})
	}
}

func stepFacts(t *testing.T, l *library, c command, f Function, mask int) {
	m, err := machineOf(l.Arch)
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewFinder(&l.Image).interpret(m, &f)
	if err != nil {
		t.Fatal(err)
	}
	g.trace()
	for _, memory := range []int{0, 16 << 20} {
		if memory != 0 && strings.HasPrefix(f.Name, "_Zn") && !strings.Contains(f.Name, "nothrow") {
			continue // it would throw
		}
		p := start(t, c, "3", "400", "1", fmt.Sprint(memory), fmt.Sprint(mask))
		s := &stepper{process: p, t: t, graph: g, seen: map[uint64]bool{}}
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d calls, %d of %d instructions, %d facts, %d claims about the result", s.calls, len(s.seen),
			len(g.addresses()), s.facts, s.claimed)
		if s.calls < 100 || s.facts < 1000 {
			t.Error("too little was compared")
		}
	}
}

// run runs the program to its end.
func (s *stepper) run() error {
	for !s.t.Failed() {
		if err := unix.PtraceCont(s.pid, 0); err != nil {
			return err
		}
		_, status, err := s.wait()
		if err != nil || status.Exited() && status.ExitStatus() == 0 {
			return err
		}
		if !status.Stopped() || status.StopSignal() != unix.SIGTRAP {
			return fmt.Errorf("status %#x", uint32(status))
		}
		var r unix.PtraceRegs
		if err := unix.PtraceGetRegs(s.pid, &r); err != nil {
			return err
		}
		if r.Rip == s.symbols["call_begin"] {
			if err := s.call(&r); err != nil {
				return err
			}
		}
	}
	return nil
}

// call follows a call.
func (s *stepper) call(r *unix.PtraceRegs) error {
	s.calls++
	s.args, s.claims, s.at = [2]uint64{r.Rdi, r.Rsi}, nil, nil
	inside := func() bool { return r.Rip >= s.base && s.at != nil }
	first := true
	for first || inside() {
		if s.at != nil {
			s.compare(r)
			if s.at.insn.flow == call {
				if err := s.over(r); err != nil {
					return err
				}
				s.move(r)
				continue
			}
		}
		if err := s.step(r); err != nil {
			return err
		}
		if first {
			first = false
			s.at, s.sp = s.graph.entry, r.Rsp
			for n := range uint8(16) {
				s.regs[n] = *registerX86Of(r, n)
			}
			continue
		}
		s.move(r)
	}
	return nil
}

// step carries out one instruction; the instruction pointer may stay in a repeated one.
func (s *stepper) step(r *unix.PtraceRegs) error {
	from := r.Rip
	for range 1 << 24 {
		if err := unix.PtraceSingleStep(s.pid); err != nil {
			return err
		}
		if _, status, err := s.wait(); err != nil || status.StopSignal() != unix.SIGTRAP {
			return fmt.Errorf("%#x after a step: %w", uint32(status), err)
		}
		if err := unix.PtraceGetRegs(s.pid, r); err != nil {
			return err
		}
		if r.Rip != from {
			return nil
		}
	}
	return fmt.Errorf("the instruction at %#x does not end", from)
}

// over carries out a call up to its return.
func (s *stepper) over(r *unix.PtraceRegs) error {
	after := r.Rip + uint64(s.at.insn.size)
	code, err := s.breakpoint(after)
	if err != nil {
		return err
	}
	sp := r.Rsp
	if err := unix.PtraceCont(s.pid, 0); err != nil {
		return err
	}
	if _, status, err := s.wait(); err != nil || !status.Stopped() || status.StopSignal() != unix.SIGTRAP {
		return fmt.Errorf("%#x in a called function: %w", uint32(status), err)
	}
	if err := unix.PtraceGetRegs(s.pid, r); err != nil {
		return err
	}
	if r.Rip != after+1 || r.Rsp != sp {
		return fmt.Errorf("a call returned to %#x with another stack", r.Rip)
	}
	r.Rip = after
	if _, err := s.memory.WriteAt(code[:1], int64(after)); err != nil {
		return err
	}
	return unix.PtraceSetRegs(s.pid, r)
}

// move finds the node that the call has come to.
func (s *stepper) move(r *unix.PtraceRegs) {
	from := s.at
	for _, e := range from.out {
		if s.base+e.to.pc == r.Rip {
			s.at = e.to
			return
		}
	}
	s.at = nil
	switch from.end {
	case returns:
		for _, c := range s.claims {
			s.claimed++
			if c.value != r.Rax {
				s.t.Errorf("%#x: location %d held %#x, but %#x was returned", c.pc, c.at, c.value, r.Rax)
			}
		}
	case tailCall, tailSame:
	default:
		s.t.Errorf("from %#x to %#x, where there is no path", from.pc, r.Rip-s.base)
	}
}

// read returns the contents of a location.
func (s *stepper) read(r *unix.PtraceRegs, l location) uint64 {
	if l < 16 {
		return *registerX86Of(r, uint8(l))
	}
	v, err := s.word(s.sp + uint64(l.offset()))
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// compare compares what is known at a node.
func (s *stepper) compare(r *unix.PtraceRegs) {
	n := s.at
	s.seen[n.pc] = true
	same := map[value]uint64{}
	wrong := func(l location, got, want uint64, what string) {
		s.t.Errorf("%#x: location %d is %#x, want %#x: %s", n.pc, l, got, want, what)
	}
	for i, v := range &n.state.vals {
		l := location(i)
		zero, nonzero := n.state.zero.has(l), n.state.nonzero.has(l)
		if l >= 16 && l < registers || v.kind == unknown && !zero && !nonzero {
			continue
		}
		got := s.read(r, l)
		s.facts++
		if zero && got != 0 || nonzero && got == 0 {
			wrong(l, got, 0, fmt.Sprintf("zero %v, not zero %v", zero, nonzero))
		}
		switch v.kind {
		case argument:
			if v.n < 2 && got != s.args[v.n] {
				wrong(l, got, s.args[v.n], "argument")
			}
		case product:
			if got != s.args[0]*s.args[1] {
				wrong(l, got, s.args[0]*s.args[1], "product")
			}
		case stack:
			if got != s.sp+uint64(v.n) {
				wrong(l, got, s.sp+uint64(v.n), "address")
			}
		case initial:
			if got != s.regs[v.loc] {
				wrong(l, got, s.regs[v.loc], "value at the entry")
			}
		case number:
			if got != uint64(v.n) {
				wrong(l, got, uint64(v.n), "number")
			}
		case made, merged:
			if other, ok := same[v]; ok && other != got {
				wrong(l, got, other, "an equal value")
			}
			same[v] = got
		}
	}
	if n.ends && n.holds != everywhere {
		for l := range n.holds.all {
			if l < 16 || l >= registers {
				s.claims = append(s.claims, claim{n.pc, l, s.read(r, l)})
			}
		}
	}
}
