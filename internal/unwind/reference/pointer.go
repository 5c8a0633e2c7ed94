package reference

import "fmt"

// leaveByPointer goes to the caller's frame by the frame pointer, which points
// to the caller's frame pointer and, behind it, the return address. Code
// without tables that keeps it so, as JIT code does, may have saved other
// registers anywhere: they become unknown. That the caller's stack ends right
// behind the return address is true on amd64 and i386; on arm64 compilers may
// have put the pair elsewhere in the frame.
func (f *frame) leaveByPointer() (End, error) {
	m := f.machine
	word := uint64(m.word)
	f.guessed = true
	fp, ok := f.regs.Get(m.fp)
	if !ok {
		return NoRule, fmt.Errorf("frame pointer: %w", errUnknown)
	}
	if fp == 0 {
		return f.outermost("frame pointer")
	}
	cfa := m.wrap(fp + 2*word)
	if sp := f.regs.R[m.sp]; fp < sp || fp%word != 0 || cfa < fp {
		return BadFrame, fmt.Errorf("frame pointer %#x with stack pointer %#x", fp, sp)
	}
	next, err := f.word(fp)
	if err != nil {
		return Unreadable, fmt.Errorf("frame pointer %#x: %w", fp, err)
	}
	address, err := f.word(fp + word)
	if err != nil {
		return Unreadable, fmt.Errorf("frame pointer %#x: %w", fp, err)
	}
	var caller Registers
	caller.Set(m.fp, next)
	caller.Set(m.sp, cfa)
	if m.link != none {
		// There the two words are anywhere in a frame. Only that the caller's is not
		// lower is known.
		caller.Valid &^= 1 << m.sp
		address = unsigned(address, f.options.addressBits())
	}
	return f.enter(caller, f.throughTrampoline(address, cfa), false)
}

// throughTrampoline returns the true return address of the frame that ends at
// cfa, where address may be that of the kernel's stub for return probes.
func (f *frame) throughTrampoline(address, cfa uint64) uint64 {
	if f.options.Trampoline != nil {
		if address, ok := f.options.Trampoline(cfa - f.machine.entry); ok {
			return address
		}
	}
	return address
}
