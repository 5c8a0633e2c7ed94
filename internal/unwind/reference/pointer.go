package reference

import "fmt"

// leaveByPointer moves to the caller's frame through the frame pointer. It points to the saved
// frame pointer of the caller, which the return address follows. Code without tables that keeps
// a frame pointer, such as JIT code, may have saved other registers anywhere, so they become
// unknown. On amd64 and i386 the caller's stack ends right after the return address. On arm64
// compilers may put the pair elsewhere in the frame.
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
		// On arm64 the two words may be anywhere in a frame. It is only known that the caller's
		// frame is not lower.
		caller.Valid &^= 1 << m.sp
		address = unsigned(address, f.options.addressBits())
	}
	return f.enter(caller, f.throughTrampoline(address, cfa), false)
}

// throughTrampoline returns the true return address of the frame that ends at cfa, if address
// is that of the kernel's stub for return probes, else address.
func (f *frame) throughTrampoline(address, cfa uint64) uint64 {
	if f.options.Trampoline != nil {
		if address, ok := f.options.Trampoline(cfa - f.machine.entry); ok {
			return address
		}
	}
	return address
}
