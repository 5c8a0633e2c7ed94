package reference

import (
	"encoding/binary"
	"fmt"

	"rtrace-bpf/internal/unwind/cfi"
)

// restorer is the code that a signal handler returns to, and where the kernel puts the
// interrupted registers, relative to the stack pointer there.
type restorer struct {
	code  []byte
	saved func(reg uint64) (offset uint64)
}

// restorersAMD64 is mov $15, %rax; syscall. The registers are in struct ucontext at sp
// (arch/x86/include/uapi/asm/sigcontext.h), starting with r8.
var restorersAMD64 = []restorer{{
	code: []byte{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05},
	saved: func(reg uint64) uint64 {
		// By DWARF number; the kernel starts with r8 to r15, rdi, rsi, rbp.
		place := [...]uint64{13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16}
		return 40 + 8*place[reg]
	},
}}

// restorersARM64 is mov x8, #139; svc #0. The registers are in struct rt_sigframe at sp
// (arch/arm64/kernel/signal.c), in the order of DWARF.
var restorersARM64 = []restorer{{
	code:  []byte{0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
	saved: func(reg uint64) uint64 { return 312 + 8*reg },
}}

// restorersI386 is mov $173, %eax; int $0x80 for handlers that get a siginfo, and pop %eax; mov
// $119, %eax; int $0x80 for others. The registers are in struct sigcontext_32 of struct
// rt_sigframe_ia32 or sigframe_ia32 (arch/x86/include/asm/sigframe.h). The return address of
// these, which comes first, was popped by the handler.
var restorersI386 = []restorer{{
	code:  []byte{0xb8, 173, 0, 0, 0, 0xcd, 0x80},
	saved: func(reg uint64) uint64 { return 160 + inContextI386(reg) },
}, {
	code:  []byte{0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80},
	saved: func(reg uint64) uint64 { return 4 + inContextI386(reg) },
}}

// inContextI386 returns the offset of a register in struct sigcontext_32, which begins with the
// segments gs, fs, es, ds and has trapno and err before eip.
func inContextI386(reg uint64) uint64 {
	place := [...]uint64{11, 10, 9, 8, 7, 6, 5, 4, 14}
	return 4 * place[reg]
}

// misleads reports whether the rules of a signal frame do not lead to the interrupted
// instruction. On arm64 they restore the interrupted function's return address, which would
// leave that function out.
func (f *frame) misleads(fde *cfi.FDE) bool { return uint64(fde.CIE.ReturnReg) == f.machine.link }

// restorer returns the restorer whose code is at pc, or nil. Those of musl, of glibc on i386
// and of arm64's vDSO have no usable rules.
func (f *frame) restorer(pc uint64) *restorer {
	for i := range f.machine.restorers {
		if r := &f.machine.restorers[i]; f.has(pc, r.code) {
			return r
		}
	}
	return nil
}

// has reports whether the memory at addr contains the given code.
func (f *frame) has(addr uint64, code []byte) bool {
	for at := 0; at < len(code); {
		n := min(8, len(code)-at)
		word, ok := narrow(f.mem, addr+uint64(at), uint(n))
		if !ok {
			return false
		}
		var padded [8]byte
		copy(padded[:], code[at:at+n])
		if word != binary.LittleEndian.Uint64(padded[:]) {
			return false
		}
		at += n
	}
	return true
}

// leaveSignal moves to the frame that a signal interrupted, using what the kernel saved at the
// stack pointer.
func (f *frame) leaveSignal(r *restorer) (End, error) {
	m := f.machine
	sp, ok := f.regs.Get(m.sp)
	if !ok {
		return BadRule, fmt.Errorf("signal frame: stack pointer: %w", errUnknown)
	}
	var caller Registers
	for n := range m.pc + 1 {
		if v, err := f.word(sp + r.saved(n)); err == nil {
			caller.Set(n, v)
		}
	}
	pc, ok := caller.Get(m.pc)
	if _, known := caller.Get(m.sp); !ok || !known {
		return Unreadable, fmt.Errorf("signal frame at %#x: %w", sp, errUnreadable)
	}
	return f.enter(caller, pc, true)
}
