package launch

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// callsOf has the system calls of x86-64 and of 32-bit x86.
var callsOf = map[uint32]calls{
	unix.AUDIT_ARCH_X86_64: {thread: []uint64{unix.SYS_ARCH_PRCTL, unix.SYS_SET_TID_ADDRESS}, protect: unix.SYS_MPROTECT},
	unix.AUDIT_ARCH_I386:   {thread: []uint64{243 /* set_thread_area */, 258 /* set_tid_address */}, protect: 125},
}

// breakpoint is int3, behind which the processor stops.
var breakpoint = []byte{0xcc}

const breakpointAdvance = 1

// userRIP is where struct user has the program counter, of 32-bit programs, too.
const userRIP = 16 * 8

// stepBack makes a process that has run into a breakpoint go on at its place.
func stepBack(pid int, to uint64) error {
	_, err := unix.PtracePokeUser(pid, userRIP, binary.NativeEndian.AppendUint64(nil, to))
	return err
}
