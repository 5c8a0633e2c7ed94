package reference

import (
	"encoding/binary"
	"fmt"

	"rtrace-bpf/internal/unwind/cfi"
)

// restorer is the code that a signal handler returns to, and where the kernel
// has put the interrupted registers above the stack pointer there.
type restorer struct {
	code  []byte
	saved func(reg uint64) (offset uint64)
}

// restorerAMD64 is mov $15, %rax; syscall. The registers are in struct
// ucontext at sp (arch/x86/include/uapi/asm/sigcontext.h), r8 first.
var restorerAMD64 = restorer{
	code: []byte{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05},
	saved: func(reg uint64) uint64 {
		// By DWARF number; the kernel begins with r8 to r15, rdi, rsi, rbp.
		place := [...]uint64{13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16}
		return 40 + 8*place[reg]
	},
}

// restorerARM64 is mov x8, #139; svc #0. The registers are in struct
// rt_sigframe at sp (arch/arm64/kernel/signal.c), in the order of DWARF.
var restorerARM64 = restorer{
	code:  []byte{0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
	saved: func(reg uint64) uint64 { return 312 + 8*reg },
}

// misleads says whether the rules of a signal frame do not find the
// interrupted instruction. On arm64 their return address is the interrupted
// function's, which would leave that function out.
func (f *frame) misleads(fde *cfi.FDE) bool { return uint64(fde.CIE.ReturnReg) == f.machine.link }

// restores says whether the code at pc is that of a restorer. Those of musl and
// of arm64's vDSO have no usable rules.
func (f *frame) restores(pc uint64) bool {
	code := f.machine.restorer.code
	for at := 0; at < len(code); {
		n := min(8, len(code)-at)
		word, ok := narrow(f.mem, pc+uint64(at), uint(n))
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

// leaveSignal goes to the frame that a signal interrupted by what the kernel
// has saved at the stack pointer.
func (f *frame) leaveSignal() (End, error) {
	m := f.machine
	sp, ok := f.regs.Get(m.sp)
	if !ok {
		return BadRule, fmt.Errorf("signal frame: stack pointer: %w", errUnknown)
	}
	var caller Registers
	for n := range m.pc + 1 {
		if v, ok := f.mem.Word(sp + m.restorer.saved(n)); ok {
			caller.Set(n, v)
		}
	}
	pc, ok := caller.Get(m.pc)
	if _, known := caller.Get(m.sp); !ok || !known {
		return Unreadable, fmt.Errorf("signal frame at %#x: %w", sp, errUnreadable)
	}
	return f.enter(caller, pc, true)
}
