package unwind

import (
	"encoding/binary"

	"rtrace-bpf/internal/unwind/cfi"
)

// outermost marks the byte in front of the code where contexts begin that a
// program makes (makecontext). glibc for arm64 lets their first function return
// to the start of a function of its own, whose entry does not say that there is
// no caller. Unwinders look for a return address one byte lower, where there is
// nothing at all.
const outermost = -1 << 7

// findContexts adds that byte. It looks only into a library that makes contexts.
func (b *builder) findContexts() error {
	if b.machine != cfi.ARM64 {
		return nil
	}
	if _, ok := b.file.Defined("makecontext"); !ok {
		return nil
	}
	for i := range b.Functions {
		f := b.functions[i]
		if f.end-f.start > 16 {
			continue
		}
		code, err := b.file.Code(f.start, f.end-f.start)
		if err != nil {
			return notSyntax(err)
		}
		if startsContext(code) {
			b.functions = append(b.functions, function{start: f.start - 1, end: f.start, section: outermost})
			return nil
		}
	}
	return nil
}

// startsContext says whether this is the code (sysdeps/unix/sysv/linux/aarch64/
// setcontext.S of glibc): a nop or landing pad; mov x0, x19; cbnz x0, setcontext;
// b exit.
func startsContext(code []byte) bool {
	if len(code) != 16 {
		return false
	}
	word := func(n int) uint32 { return binary.LittleEndian.Uint32(code[4*n:]) }
	return word(0)&0xfffff01f == 0xd503201f && word(1) == 0xaa1303e0 &&
		word(2)&0xff00001f == 0xb5000000 && word(3)&0xfc000000 == 0x14000000
}
