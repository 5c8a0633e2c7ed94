package tracer

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// watchKeeper has the recording end with an error when a keeper ends. Any goroutine
// may call it for another one than the first.
func (c *collector) watchKeeper(fd int) error {
	if c.keeperFD < 0 {
		c.keeperFD = fd
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.keeperFD)} // stands for all of them
	if err := unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("watch the process that holds the probes: %w", err)
	}
	return nil
}
