package family

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// options makes the kernel attach the threads and processes that a thread makes, stop it at an
// exec, and mark its stops at system calls.
const options = unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACECLONE |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESYSGOOD

// syscallStop marks the signal of stops at system calls (PTRACE_O_TRACESYSGOOD).
const syscallStop = 0x80

func ptraceSeize(tid int) error { return ptrace(unix.PTRACE_SEIZE, tid, options) }

// ptraceListen leaves a thread stopped until it is continued as a job.
func ptraceListen(tid int) error { return ptrace(unix.PTRACE_LISTEN, tid, 0) }

// ptraceDetach lets a thread go with a signal, 0 for none.
func ptraceDetach(tid int, sig unix.Signal) error {
	return ptrace(unix.PTRACE_DETACH, tid, uintptr(sig))
}

func ptrace(request, tid int, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), 0, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// childInfo is the beginning of siginfo_t as filled in by waitid, on 64-bit machines.
type childInfo struct {
	signo, errno, code int32
	_                  int32
	pid                int32
	uid                uint32
	status             int32
	_                  [100]byte
}

// The codes of threads that have ended (CLD_…).
const (
	codeExited = 1
	codeKilled = 2
	codeDumped = 3
)

// ended reports whether the thread has ended.
func (c *childInfo) ended() bool {
	return c.code == codeExited || c.code == codeKilled || c.code == codeDumped
}

// peek returns the next status change of a thread that this one holds, without consuming it. It
// does not wait.
func peek() (info childInfo, there bool) {
	err := wait(&info)
	return info, err == nil && info.pid != 0
}

// childless reports whether the calling thread has no child processes and holds none.
func childless() bool {
	var info childInfo
	return errors.Is(wait(&info), unix.ECHILD)
}

// wait fills info with the next status change of the calling thread's children and of
// the threads it holds; its pid is 0 if there is no change yet.
func wait(info *childInfo) error {
	for {
		_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(info)),
			unix.WEXITED|unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT|unix.WALL|unix.WNOTHREAD, 0, 0)
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

// take consumes the status change of a thread.
func take(tid int) (status unix.WaitStatus, there bool) {
	for {
		got, err := unix.Wait4(tid, &status, unix.WALL|unix.WNOHANG|unix.WNOTHREAD, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return status, err == nil && got == tid
	}
}
