package launch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// hold is a process that is held. Only the thread that started the process may call its methods.
type hold struct {
	pid  int
	note func(unix.WaitStatus) // called with the status when the process ends

	start  start
	files  int    // number of mapped files with code at the last look
	entry  uint64 // entry point of its program
	saved  []byte // what the breakpoint there has replaced; nil: no breakpoint
	last   bool   // it has reached the last place
	ended  bool
	stops  []unix.Signal
	signal int // to deliver when the process continues
}

// begin is called after the process was started, when it is stopped at its exec.
func (h *hold) begin() error {
	if _, err := h.wait(); err != nil {
		return err
	}
	// From here on the kernel kills the process when this one ends.
	if err := unix.PtraceSetOptions(h.pid, unix.PTRACE_O_EXITKILL|unix.PTRACE_O_TRACESYSGOOD); err != nil {
		return fmt.Errorf("make it end with rtrace-bpf: %w", err)
	}
	head, err := proc.ProgramHead(h.pid)
	if err != nil {
		return err
	}
	if h.start, err = startOf(h.pid, head.Bits/8); err != nil {
		return err
	}
	if h.entry, err = proc.Entry(h.pid, head.Bits/8); err != nil {
		return err
	}
	h.files, err = codeFiles(h.pid)
	return err
}

// next implements Command.Next.
func (h *hold) next() (bool, error) {
	switch {
	case h.ended:
		return false, ErrEnded
	case h.last:
		return false, nil
	case h.start == startStatic:
		h.last = true
		return true, nil
	case h.start != startByHand && h.saved == nil:
		if err := h.setBreakpoint(); err != nil {
			return false, err
		}
	}
	return true, h.run()
}

// run runs the process to the next place.
func (h *hold) run() error {
	for {
		resume := unix.PtraceCont
		if h.start != startOwnLoader {
			resume = unix.PtraceSyscall
		}
		signal := h.signal
		h.signal = 0
		if err := resume(h.pid, signal); err != nil && !errors.Is(err, unix.ESRCH) { // killed: wait returns that
			return fmt.Errorf("resume the command: %w", err)
		}
		status, err := h.wait()
		if err != nil {
			return err
		}
		there, err := h.at(status)
		if there || err != nil {
			return err
		}
	}
}

// at reports whether the process has stopped at a place for probes.
func (h *hold) at(status unix.WaitStatus) (bool, error) {
	switch sig := status.StopSignal(); {
	case sig == unix.SIGTRAP|syscallStop:
		return allMapped(h.pid, &h.files)
	case sig == unix.SIGTRAP:
		stop, err := stopOf(h.pid)
		if err != nil {
			return false, err
		}
		if h.saved != nil && stop.pc == h.entry+breakpointAdvance {
			h.last = true
			return true, h.removeBreakpoint(true)
		}
		h.signal = int(sig)
	case Stops(sig):
		h.stops = append(h.stops, sig) // the process stops when it is released
	default:
		h.signal = int(sig)
	}
	return false, nil
}

// syscallStop marks the signal of stops at system calls (PTRACE_O_TRACESYSGOOD).
const syscallStop = 0x80

// wait waits until the process stops. The error is ErrEnded if it ends instead.
func (h *hold) wait() (unix.WaitStatus, error) {
	status, err := waitStop(h.pid)
	if h.ended = errors.Is(err, ErrEnded); h.ended {
		h.note(status)
	}
	return status, err
}

// release lets the process go.
func (h *hold) release() error {
	if h.ended {
		return nil
	}
	if h.saved != nil {
		if err := h.removeBreakpoint(false); err != nil {
			return err
		}
	}
	for _, sig := range h.stops { // they take effect when the process is not held any more
		_ = unix.Kill(h.pid, sig)
	}
	if err := unix.PtraceDetach(h.pid); err != nil && !errors.Is(err, unix.ESRCH) { // it was killed
		return fmt.Errorf("release the command: %w", err)
	}
	return nil
}

func (h *hold) setBreakpoint() error {
	saved := make([]byte, len(breakpoint))
	if _, err := unix.PtracePeekText(h.pid, uintptr(h.entry), saved); err != nil {
		return fmt.Errorf("read the command's first instruction: %w", err)
	}
	if _, err := unix.PtracePokeText(h.pid, uintptr(h.entry), breakpoint); err != nil {
		return fmt.Errorf("set a breakpoint on the command's first instruction: %w", err)
	}
	h.saved = saved
	return nil
}

// removeBreakpoint removes the breakpoint. back reports that the process has hit it and must
// continue at its address.
func (h *hold) removeBreakpoint(back bool) error {
	if _, err := unix.PtracePokeText(h.pid, uintptr(h.entry), h.saved); err != nil {
		return fmt.Errorf("remove the breakpoint from the command's first instruction: %w", err)
	}
	h.saved = nil
	if !back {
		return nil
	}
	if err := stepBack(h.pid, h.entry); err != nil {
		return fmt.Errorf("go back to the command's first instruction: %w", err)
	}
	return nil
}

// codeFiles counts the files that a process has mapped as code.
func codeFiles(pid int) (int, error) {
	all, err := proc.Maps(pid)
	if err != nil {
		return 0, err
	}
	seen := map[file]bool{}
	for i := range all {
		if m := &all[i]; m.Inode != 0 && m.Perms&proc.Exec != 0 {
			seen[fileOf(m)] = true
		}
	}
	return len(seen), nil
}
