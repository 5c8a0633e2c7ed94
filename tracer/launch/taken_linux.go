package launch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
)

// Taken is a process that somebody else has started, held from its exec on. Nothing is
// written into it, so that it goes on as if nothing had been when its holder ends in
// whatever way. Its methods are for the thread that has taken it.
type Taken struct {
	pid   int
	start start
	files int // with code, when the process was last looked at
	last  bool
	ended bool

	loader    file // that maps its libraries; none if it is static
	stops     []unix.Signal
	signal    int  // for the process when it goes on
	continued bool // by us: the signal is not for the process
}

// file is a file as the lists of mappings name it.
type file struct {
	major, minor uint32
	inode        uint64
}

func fileOf(m *proc.Map) file { return file{m.Major, m.Minor, m.Inode} }

// Take takes a process that is executing a program, and returns when it has got to its
// first instruction. stopped is called then, and says whether it was sent SIGSTOP for
// this to be possible, which is undone. After an error the process runs on.
func Take(pid int, stopped func() bool) (*Taken, error) {
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACEEXEC
	// One that is still in its exec stops there. The interruption is for one that is
	// behind that.
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, options, 0, 0); errno != 0 {
		err := error(errno)
		if status, e := proc.ReadStatus(pid); e == nil && status.TracerPID != 0 {
			err = fmt.Errorf("process %d traces it already, as strace and debuggers do", status.TracerPID)
		}
		return nil, err
	}
	if err := unix.PtraceInterrupt(pid); err != nil && !errors.Is(err, unix.ESRCH) { // killed: the wait tells
		return nil, fmt.Errorf("interrupt it: %w", err)
	}
	t := &Taken{pid: pid}
	status, err := t.wait()
	if err != nil {
		return nil, err
	}
	if status>>16 == 0 { // none of ours, but a signal's
		t.keep(status.StopSignal())
	}
	if stopped() {
		t.stops = nil // it may have stopped for this very signal, which is not to be given back
		t.continued = true
		_ = unix.Kill(pid, unix.SIGCONT) // one that was killed needs none
	}
	if err := t.look(); err != nil {
		return nil, errors.Join(err, t.Release())
	}
	return t, nil
}

// look finds out how the process begins.
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
	if err == nil && at == 0 { // started by hand: it is the program
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
		t.start = startStatic // there is no sign of the loader's end: the libc is there, at least
	}
	t.files, err = codeFiles(t.pid)
	return err
}

// protects says whether the program has data that its loader makes read-only when it
// has mapped and relocated all.
func protects(pid int) bool {
	f, err := symbol.Open(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Protected()
}

// PID returns the process id.
func (t *Taken) PID() int { return t.pid }

// Next is that of Command.
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
		if err := unix.PtraceSyscall(t.pid, signal); err != nil && !errors.Is(err, unix.ESRCH) { // killed: the wait tells
			return false, fmt.Errorf("let process %d run: %w", t.pid, err)
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

// at says whether the place where the process has stopped is one for probes.
func (t *Taken) at(status unix.WaitStatus) (bool, error) {
	switch sig := status.StopSignal(); {
	case sig == unix.SIGTRAP|syscallStop:
		return t.atCall()
	case status>>16 != 0: // of ours: exec, or the interruption
	default:
		t.keep(sig)
	}
	return false, nil
}

// keep keeps a signal for the process.
func (t *Taken) keep(sig unix.Signal) {
	switch {
	case Stops(sig):
		t.stops = append(t.stops, sig) // it stops when it is let go
	case sig == unix.SIGCONT && t.continued:
		t.continued = false
	case sig == unix.SIGCONT:
		t.stops = nil
		t.signal = int(sig)
	default:
		t.signal = int(sig)
	}
}

// atCall says whether a system call is a sign that the libraries are there.
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
	// Others than the loader make calls when it has called the first of them.
	t.last, err = t.isOutside(s.pc)
	return t.last, err
}

// isOutside says whether code is of a file other than the loader.
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

// Release lets the process go. It runs from then on as if nobody had held it.
func (t *Taken) Release() error {
	if t.ended {
		return nil
	}
	for _, sig := range t.stops { // they take effect when nobody holds it any more
		_ = unix.Kill(t.pid, sig)
	}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(t.pid), 0, uintptr(t.signal), 0, 0)
	if errno != 0 && errno != unix.ESRCH { // it was killed
		return fmt.Errorf("let process %d go: %w", t.pid, errno)
	}
	return nil
}
