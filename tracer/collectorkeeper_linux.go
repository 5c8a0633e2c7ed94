package tracer

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// watchKeeper makes the recording end with an error when the keeper with the descriptor
// fd ends. The first call must come before run starts; later calls may come from any
// goroutine.
func (c *collector) watchKeeper(fd int) error {
	if c.keeperFD < 0 {
		c.keeperFD = fd
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.keeperFD)} // pause recognises all keepers by it
	if err := unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("watch the process that holds the probes: %w", err)
	}
	return nil
}
