package reference

import (
	"debug/elf"
	"slices"
)

// expected returns the stack as the open calls have it, in front of the frames
// that were there at first.
func (s *stepper) expected(outer []uint64) []uint64 {
	all := []uint64{s.pc()}
	if to, ok := s.leaves(); ok && len(s.open) > 0 {
		if last := s.open[len(s.open)-1]; last.slot != s.sp() && last.address != to {
			all = append(all, to) // an exception's way to its handler
		}
	}
	for _, c := range slices.Backward(s.open) {
		all = append(all, c.address)
	}
	return append(all, outer...)
}

// leaves returns where the next instructions go if they end a function: ret, or
// on i386 pop %ecx and jmp *%ecx.
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

// intact says whether all open calls' return addresses are where they were
// put. When an exception enters its handler, the unwinder of libgcc writes over
// its own: then nothing in the process says where it was called.
func (s *stepper) intact() bool {
	for _, c := range s.open {
		if v, ok := s.address(c.slot); c.slot%uint64(s.machine.word) == 0 && (!ok || v != c.address) {
			return false
		}
	}
	return true
}

// described says whether all of the code has tables. On i386 neither the vDSO's
// C functions nor the start files' __x86.get_pc_thunk.bx have any.
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

// copied is a part of glibc's memcpy for i386 that pushes eax, copies and takes it
// off again, which its rules do not say.
var copied = []byte{0x50, 0x89, 0xc8, 0xc1, 0xe9, 0x02, 0x83, 0xe0, 0x03, 0xf3, 0xa5, 0x89, 0xc1, 0xf3, 0xa4, 0x58}

// within says whether an instruction of the code is next that is not its first.
func (s *stepper) within(code []byte) bool {
	f := frame{mem: s}
	for at := 1; at < len(code); at++ {
		if f.has(s.pc()-uint64(at), code) {
			return true
		}
	}
	return false
}

// misdescribed says whether the last two instructions of a realigned function
// are next, lea -8(%r10), %rsp and ret. GCC's rule says that rbp is saved where
// rbp points to; here it was already restored.
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
