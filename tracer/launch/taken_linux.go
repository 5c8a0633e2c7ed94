package launch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
)

// Taken is a process that another process has started, held from its exec on. Nothing is written
// into it, so it continues undisturbed when its holder ends in any way. Only the thread that has
// taken it may call its methods.
type Taken struct {
	pid   int
	start start
	files int // number of mapped files with code at the last look
	last  bool
	ended bool

	loader    file // the file that maps its libraries; zero if it is static
	stops     []unix.Signal
	signal    int  // to deliver when the process continues
	continued bool // we have sent SIGCONT: the signal is not for the process
}

// file identifies a file as lists of mappings do.
type file struct {
	major, minor uint32
	inode        uint64
}

func fileOf(m *proc.Map) file { return file{m.Major, m.Minor, m.Inode} }

// Take takes a process that is executing a program, and returns when it has reached its first
// instruction. It then calls stopped, which reports whether SIGSTOP was sent to the process to
// make this possible; Take undoes that. After an error the process continues to run.
func Take(pid int, stopped func() bool) (*Taken, error) {
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACEEXEC
	// A process that is still in its exec stops there. The interruption is for one that is
	// already past it.
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, options, 0, 0); errno != 0 {
		err := error(errno)
		if status, e := proc.ReadStatus(pid); e == nil && status.TracerPID != 0 {
			err = fmt.Errorf("process %d traces it already, as strace and debuggers do", status.TracerPID)
		}
		return nil, err
	}
	if err := unix.PtraceInterrupt(pid); err != nil && !errors.Is(err, unix.ESRCH) { // killed: the wait returns that
		return nil, fmt.Errorf("interrupt it: %w", err)
	}
	t := &Taken{pid: pid}
	status, err := t.wait()
	if err != nil {
		return nil, err
	}
	if status>>16 == 0 { // not a ptrace stop but one for a signal
		t.keep(status.StopSignal())
	}
	if stopped() {
		t.stops = nil // it may have stopped for this very signal, which must not be delivered again
		t.continued = true
		_ = unix.Kill(pid, unix.SIGCONT) // not needed if it was killed
	}
	if err := t.look(); err != nil {
		return nil, errors.Join(err, t.Release())
	}
	return t, nil
}

// look finds how the process begins.
func (t *Taken) look() error {
	head, err := proc.ProgramHead(t.pid)
	if err != nil {
		return err
	}
	word := head.Bits / 8
	if t.start, err = startOf(t.pid, word); err != nil || t.start == startStatic {
		return err
	}
	at, err := proc.Interpreter(t.pid, word)
	if err == nil && at == 0 { // started by hand: the loader is the program
		at, err = proc.Entry(t.pid, word)
	}
	if err != nil {
		return err
	}
	all, err := proc.Maps(t.pid)
	if err != nil {
		return err
	}
	for i := range all {
		if at >= all[i].Start && at < all[i].End {
			t.loader = fileOf(&all[i])
		}
	}
	if t.start == startOwnLoader && !protects(t.pid) {
		t.start = startStatic // nothing marks the loader's end, but at least the libc is mapped
	}
	t.files, err = codeFiles(t.pid)
	return err
}

// protects reports whether the program has data that its loader makes read-only after it has
// mapped and relocated everything.
func protects(pid int) bool {
	f, err := symbol.Open(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Protected()
}

// PID returns the process ID.
func (t *Taken) PID() int { return t.pid }

// Next is like Command.Next.
func (t *Taken) Next() (there bool, err error) {
	switch {
	case t.ended:
		return false, ErrEnded
	case t.last:
		return false, nil
	case t.start == startStatic:
		t.last = true
		return true, nil
	}
	for {
		signal := t.signal
		t.signal = 0
		if err := unix.PtraceSyscall(t.pid, signal); err != nil && !errors.Is(err, unix.ESRCH) { // killed: the wait returns that
			return false, fmt.Errorf("resume process %d: %w", t.pid, err)
		}
		status, err := t.wait()
		if err != nil {
			return false, err
		}
		if there, err := t.at(status); there || err != nil {
			return there, err
		}
	}
}

// at reports whether the process has stopped at a place for probes.
func (t *Taken) at(status unix.WaitStatus) (bool, error) {
	switch sig := status.StopSignal(); {
	case sig == unix.SIGTRAP|syscallStop:
		return t.atCall()
	case status>>16 != 0: // a ptrace stop: exec, or the interruption
	default:
		t.keep(sig)
	}
	return false, nil
}

// keep stores a signal for the process.
func (t *Taken) keep(sig unix.Signal) {
	switch {
	case Stops(sig):
		t.stops = append(t.stops, sig) // the process stops when it is released
	case sig == unix.SIGCONT && t.continued:
		t.continued = false
	case sig == unix.SIGCONT:
		t.stops = nil
		t.signal = int(sig)
	default:
		t.signal = int(sig)
	}
}

// atCall reports whether a system call shows that the libraries are mapped.
func (t *Taken) atCall() (bool, error) {
	s, err := stopOf(t.pid)
	if err != nil || s.op != unix.PTRACE_SYSCALL_INFO_ENTRY {
		return false, err
	}
	if t.start == startOwnLoader {
		c := callsOf[s.arch]
		t.last = s.call == c.protect && s.args[2] == unix.PROT_READ
		return t.last, nil
	}
	if s.entersMapped() {
		n, err := codeFiles(t.pid)
		if err != nil || n != t.files {
			t.files = n
			return err == nil, err
		}
	}
	// Code outside of the loader makes calls only after the loader has called the first
	// constructor.
	t.last, err = t.isOutside(s.pc)
	return t.last, err
}

// isOutside reports whether code belongs to a file other than the loader.
func (t *Taken) isOutside(pc uint64) (bool, error) {
	all, err := proc.Maps(t.pid)
	if err != nil {
		return false, err
	}
	for i := range all {
		if m := &all[i]; pc >= m.Start && pc < m.End {
			return m.Inode != 0 && fileOf(m) != t.loader, nil
		}
	}
	return false, nil
}

// wait waits until the process stops. The error is ErrEnded if it ends instead.
func (t *Taken) wait() (unix.WaitStatus, error) {
	status, err := waitStop(t.pid)
	t.ended = errors.Is(err, ErrEnded)
	return status, err
}

// Release lets the process go. From then on it runs as if it had never been held.
func (t *Taken) Release() error {
	if t.ended {
		return nil
	}
	for _, sig := range t.stops { // they take effect when the process is not held any more
		_ = unix.Kill(t.pid, sig)
	}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(t.pid), 0, uintptr(t.signal), 0, 0)
	if errno != 0 && errno != unix.ESRCH { // the process may have been killed
		return fmt.Errorf("release process %d: %w", t.pid, errno)
	}
	return nil
}
