package recording

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// exits reports which of some processes have ended. It does not confuse them with later
// processes that have the same id.
type exits struct {
	fds map[int]int // pidfds by process; none for a process that was not found
}

func watchExits(pids []int) (*exits, error) {
	e := &exits{fds: map[int]int{}}
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case err == nil:
			e.fds[pid] = fd
		case !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT):
			// These errors are for numbers that are no process, or a thread's: the
			// tracer reports them.
			return nil, errors.Join(fmt.Errorf("watch process %d: %w", pid, err), e.Close())
		}
	}
	return e, nil
}

// gone reports whether a process has ended.
func (e *exits) gone(pid int) bool {
	fd, ok := e.fds[pid]
	if !ok {
		return false
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1
}

// all reports whether all processes have ended.
func (e *exits) all() bool {
	for pid := range e.fds {
		if !e.gone(pid) {
			return false
		}
	}
	return true
}

// Close releases the processes.
func (e *exits) Close() error {
	var errs []error
	for _, fd := range e.fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
