package launch

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stop is where a process has stopped: the head of struct ptrace_syscall_info.
type stop struct {
	op   uint8 // PTRACE_SYSCALL_INFO_…
	_    [3]uint8
	arch uint32 // AUDIT_ARCH_…
	pc   uint64
	_    uint64 // the stack pointer
	call uint64 // the number of the system call that is entered
	args [6]uint64
}

// stopOf asks the kernel where the process has stopped. It says so in the same way for
// programs of each width (since Linux 5.3).
func stopOf(pid int) (stop, error) {
	var s stop
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(pid),
		unsafe.Sizeof(s), uintptr(unsafe.Pointer(&s)), 0, 0)
	if errno != 0 {
		return s, fmt.Errorf("ask where the command has stopped: %w", errno)
	}
	return s, nil
}

// Stops says whether a signal stops a process as a job. Who holds a process would have to
// keep it stopped then.
func Stops(sig unix.Signal) bool {
	return sig == unix.SIGSTOP || sig == unix.SIGTSTP || sig == unix.SIGTTIN || sig == unix.SIGTTOU
}

// waitStop waits until a process that the calling thread holds stops, and returns how.
// The error is ErrEnded, and the status that of its end, if it ends instead.
func waitStop(pid int) (unix.WaitStatus, error) {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for process %d: %w", pid, err)
		case status.Exited(), status.Signaled():
			return status, ErrEnded
		case status.Stopped():
			return status, nil
		}
	}
}

// calls are the numbers of the system calls of one kind of programs by which the
// loader is known to have mapped all libraries.
type calls struct {
	// thread are those that set up the first thread: the place of its storage, or where
	// the kernel clears its id. They come before the first relocation.
	thread []uint64
	// protect is mprotect, by which relocated data is made read-only. The same call is
	// made while mapping, for the holes between segments, but never with that argument.
	protect uint64
}

// entersMapped says that the process is entering a system call that the loader makes
// when all libraries are mapped.
func (s *stop) entersMapped() bool {
	if s.op != unix.PTRACE_SYSCALL_INFO_ENTRY {
		return false
	}
	c, ok := callsOf[s.arch]
	return ok && (slices.Contains(c.thread, s.call) || s.call == c.protect && s.args[2] == unix.PROT_READ)
}
