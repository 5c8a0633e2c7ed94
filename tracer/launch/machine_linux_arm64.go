package launch

import "golang.org/x/sys/unix"

// callsOf has the system calls of arm64. The place of a thread's storage is set without
// one there, and before glibc 2.34 the id, too, so that the first is mprotect.
var callsOf = map[uint32]calls{
	unix.AUDIT_ARCH_AARCH64: {thread: []uint64{unix.SYS_SET_TID_ADDRESS}, protect: unix.SYS_MPROTECT},
}

// breakpoint is brk #0, at which the processor stops.
var breakpoint = []byte{0x00, 0x00, 0x20, 0xd4}

const breakpointAdvance = 0

// stepBack has nothing to do.
func stepBack(int, uint64) error { return nil }
