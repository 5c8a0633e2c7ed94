package launch

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// callsOf holds the system calls of x86-64 and of 32-bit x86.
var callsOf = map[uint32]calls{
	unix.AUDIT_ARCH_X86_64: {thread: []uint64{unix.SYS_ARCH_PRCTL, unix.SYS_SET_TID_ADDRESS}, protect: unix.SYS_MPROTECT},
	unix.AUDIT_ARCH_I386:   {thread: []uint64{243 /* set_thread_area */, 258 /* set_tid_address */}, protect: 125},
}

// breakpoint is int3. The processor stops after it.
var breakpoint = []byte{0xcc}

const breakpointAdvance = 1

// userRIP is the offset of the program counter in struct user, also for 32-bit programs.
const userRIP = 16 * 8

// stepBack makes a process that has hit a breakpoint continue at the breakpoint's address.
func stepBack(pid int, to uint64) error {
	_, err := unix.PtracePokeUser(pid, userRIP, binary.NativeEndian.AppendUint64(nil, to))
	return err
}
