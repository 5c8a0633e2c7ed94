package unwind

import (
	"encoding/binary"

	"rtrace-bpf/internal/unwind/cfi"
)

// outermost marks the byte before the code to which the first function of a context returns, if
// a program made the context (makecontext). In glibc for arm64 that code is the start of a
// function whose rules do not mark the end of the stack. Unwinders look up a return address
// minus one byte, where there is no rule at all.
const outermost = -1 << 7

// findContexts adds the code of outermost. It searches only a library that makes contexts.
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

// startsContext reports whether code is that function
// (sysdeps/unix/sysv/linux/aarch64/setcontext.S of glibc): a nop or landing pad; mov x0, x19;
// cbnz x0, setcontext; b exit.
func startsContext(code []byte) bool {
	if len(code) != 16 {
		return false
	}
	word := func(n int) uint32 { return binary.LittleEndian.Uint32(code[4*n:]) }
	return word(0)&0xfffff01f == 0xd503201f && word(1) == 0xaa1303e0 &&
		word(2)&0xff00001f == 0xb5000000 && word(3)&0xfc000000 == 0x14000000
}
