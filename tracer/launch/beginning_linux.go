package launch

import "rtrace-bpf/internal/linux/proc"

// Beginning is how the program that a process has just executed begins, for callers that hold
// processes they have not started.
type Beginning struct {
	pid   int
	start start
	files int // number of mapped files with code at the last look
}

// BeginningOf examines a process that ptrace has stopped at its exec.
func BeginningOf(pid int) (*Beginning, error) {
	head, err := proc.ProgramHead(pid)
	if err != nil {
		return nil, err
	}
	b := &Beginning{pid: pid}
	if b.start, err = startOf(pid, head.Bits/8); err != nil {
		return nil, err
	}
	b.files, err = codeFiles(pid)
	return b, err
}

// AtOnce reports that the process need not run any further: its allocator is in the program
// itself, or in the loader.
func (b *Beginning) AtOnce() bool { return b.start == startStatic || b.start == startOwnLoader }

// Static reports that nothing but the program will be mapped.
func (b *Beginning) Static() bool { return b.start == startStatic }

// Mapped reports whether a process that ptrace has stopped at a system call has mapped all its
// libraries since the last call of Mapped, and has not run anything of them.
func (b *Beginning) Mapped() (bool, error) { return allMapped(b.pid, &b.files) }

// allMapped reports whether a process that has stopped at a system call has mapped all its
// libraries since *files files with code were mapped. It updates *files.
func allMapped(pid int, files *int) (bool, error) {
	stop, err := stopOf(pid)
	if err != nil || !stop.entersMapped() {
		return false, err
	}
	n, err := codeFiles(pid)
	if err != nil || n == *files {
		return false, err
	}
	*files = n
	return true, nil
}
