package launch

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stop is where a process has stopped: the beginning of struct ptrace_syscall_info.
type stop struct {
	op   uint8 // PTRACE_SYSCALL_INFO_…
	_    [3]uint8
	arch uint32 // AUDIT_ARCH_…
	pc   uint64
	_    uint64 // stack pointer
	call uint64 // the number of the system call that is entered
	args [6]uint64
}

// stopOf returns where the process has stopped. The kernel reports it in the same form for
// programs of each width (since Linux 5.3).
func stopOf(pid int) (stop, error) {
	var s stop
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(pid),
		unsafe.Sizeof(s), uintptr(unsafe.Pointer(&s)), 0, 0)
	if errno != 0 {
		return s, fmt.Errorf("find where the command has stopped: %w", errno)
	}
	return s, nil
}

// Stops reports whether a signal stops a process as a job. Code that holds the process must
// then keep it stopped.
func Stops(sig unix.Signal) bool {
	return sig == unix.SIGSTOP || sig == unix.SIGTSTP || sig == unix.SIGTTIN || sig == unix.SIGTTOU
}

// waitStop waits until a process that the calling thread holds stops, and returns the status. If
// the process ends instead, the error is ErrEnded and the status is that of its end.
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

// calls holds the numbers of the system calls of one kind of program that show that the loader
// has mapped all libraries.
type calls struct {
	// thread holds the calls that set up the first thread: the place of its storage, or where the
	// kernel clears its ID. They come before the first relocation.
	thread []uint64
	// protect is mprotect, with which relocated data is made read-only. The loader also calls it
	// while mapping, for the holes between segments, but never with that argument.
	protect uint64
}

// entersMapped reports whether the process is entering a system call that the loader makes after
// all libraries are mapped.
func (s *stop) entersMapped() bool {
	if s.op != unix.PTRACE_SYSCALL_INFO_ENTRY {
		return false
	}
	c, ok := callsOf[s.arch]
	return ok && (slices.Contains(c.thread, s.call) || s.call == c.protect && s.args[2] == unix.PROT_READ)
}
