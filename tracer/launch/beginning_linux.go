package launch

import "rtrace-bpf/internal/linux/proc"

// Beginning is how the program begins that a process has just become, for those who
// hold processes that they have not started.
type Beginning struct {
	pid   int
	start start
	files int // with code, when the process was last looked at
}

// BeginningOf looks at a process that ptrace has stopped at its exec.
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

// AtOnce says that the process need not run any further: its allocator is in the
// program itself, or in the loader.
func (b *Beginning) AtOnce() bool { return b.start == startStatic || b.start == startOwnLoader }

// Static says that nothing will be mapped beside the program.
func (b *Beginning) Static() bool { return b.start == startStatic }

// Mapped says, of a process that ptrace has stopped at a system call, whether all
// libraries have been mapped since it was last asked, and nothing of them has run.
func (b *Beginning) Mapped() (bool, error) { return allMapped(b.pid, &b.files) }

// allMapped says whether a process that has stopped at a system call has mapped all its
// libraries, and more than so many files since.
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
