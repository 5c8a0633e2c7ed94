package reference

import (
	"debug/elf"
	"slices"
)

// expected returns the stack according to the open calls, followed by the frames that were
// there at first.
func (s *stepper) expected(outer []uint64) []uint64 {
	all := []uint64{s.pc()}
	if to, ok := s.leaves(); ok && len(s.open) > 0 {
		if last := s.open[len(s.open)-1]; last.slot != s.sp() && last.address != to {
			all = append(all, to) // where an exception leads to its handler
		}
	}
	for _, c := range slices.Backward(s.open) {
		all = append(all, c.address)
	}
	return append(all, outer...)
}

// leaves returns the target of the next instructions if they end a function: ret, or on i386
// pop %ecx and jmp *%ecx.
func (s *stepper) leaves() (to uint64, ok bool) {
	const ret, popJump = 0xc3, 0xe1ff59
	op, _ := s.Word(s.pc())
	if op&0xff == ret {
		return s.address(s.sp())
	}
	if s.options.Machine != elf.EM_386 {
		return 0, false
	}
	if op&0xffffff == popJump {
		return s.address(s.sp())
	}
	before, _ := s.Word(s.pc() - 1)
	to, _ = s.regs.Get(1)
	return to, before&0xffffff == popJump
}

// intact reports whether the return addresses of all open calls are still in place. When an
// exception enters its handler, libgcc's unwinder overwrites its own, and nothing in the
// process holds its caller any more.
func (s *stepper) intact() bool {
	for _, c := range s.open {
		if v, ok := s.address(c.slot); c.slot%uint64(s.machine.word) == 0 && (!ok || v != c.address) {
			return false
		}
	}
	return true
}

// described reports whether all of the code has tables. On i386 the vDSO's C functions and the
// start files' __x86.get_pc_thunk.bx have none.
func (s *stepper) described(pcs []uint64) bool {
	for i, pc := range pcs {
		lookup := pc
		if i > 0 {
			lookup--
		}
		m, ok := s.Find(lookup)
		if !ok || m.Index == nil {
			return false
		}
		if _, ok := m.Index.Find(lookup - m.Bias); !ok && s.options.Machine == elf.EM_386 {
			return false
		}
	}
	return true
}

// copied is a part of glibc's memcpy for i386. It pushes eax, copies, and pops eax, which its
// rules do not describe.
var copied = []byte{0x50, 0x89, 0xc8, 0xc1, 0xe9, 0x02, 0x83, 0xe0, 0x03, 0xf3, 0xa5, 0x89, 0xc1, 0xf3, 0xa4, 0x58}

// within reports whether the next instruction is one of the code's, but not its first.
func (s *stepper) within(code []byte) bool {
	f := frame{mem: s}
	for at := 1; at < len(code); at++ {
		if f.has(s.pc()-uint64(at), code) {
			return true
		}
	}
	return false
}

// misdescribed reports whether the next instruction is one of the last two of a realigned
// function, lea -8(%r10), %rsp and ret. GCC's rule has rbp saved where rbp points to, but here
// rbp is already restored.
func (s *stepper) misdescribed() bool {
	const lea = 0xf8628d49
	if s.options.Machine == elf.EM_386 {
		return s.within(copied)
	}
	for _, at := range []uint64{s.pc(), s.pc() - 4} {
		if op, _ := s.Word(at); uint32(op) == lea {
			return true
		}
	}
	return false
}
