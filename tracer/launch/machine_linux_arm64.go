package launch

import "golang.org/x/sys/unix"

// callsOf holds the system calls of arm64. There, the place of a thread's storage is set without
// a system call, and before glibc 2.34 so is the ID. The first one is then mprotect.
var callsOf = map[uint32]calls{
	unix.AUDIT_ARCH_AARCH64: {thread: []uint64{unix.SYS_SET_TID_ADDRESS}, protect: unix.SYS_MPROTECT},
}

// breakpoint is brk #0. The processor stops at it.
var breakpoint = []byte{0x00, 0x00, 0x20, 0xd4}

const breakpointAdvance = 0

// stepBack does nothing: the processor stops at the breakpoint.
func stepBack(int, uint64) error { return nil }
