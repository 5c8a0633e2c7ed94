package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// lives tells which of some processes have ended. A later process with the number of
// one of them is not taken for it.
type lives struct {
	fds map[int]int // by process; none for one that could not be found
}

func watchLives(pids []int) (*lives, error) {
	l := &lives{fds: map[int]int{}}
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case err == nil:
			l.fds[pid] = fd
		case !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT):
			// None of what is said of a number that is no process's, or a thread's, of
			// which whoever traces it tells.
			return nil, errors.Join(fmt.Errorf("watch process %d: %w", pid, err), l.Close())
		}
	}
	return l, nil
}

// gone says whether a process has ended.
func (l *lives) gone(pid int) bool {
	fd, ok := l.fds[pid]
	if !ok {
		return false
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1
}

// none says whether all have ended.
func (l *lives) none() bool {
	for pid := range l.fds {
		if !l.gone(pid) {
			return false
		}
	}
	return true
}

func (l *lives) Close() error {
	var errs []error
	for _, fd := range l.fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
