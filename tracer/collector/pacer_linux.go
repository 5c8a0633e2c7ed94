package collector

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// The rings are polled, because waking the tracer for each event costs more than the
// event (docs/design/decisions.md, 41).
const (
	pollShortest = time.Millisecond
	pollLongest  = 20 * time.Millisecond
)

// pacer waits between two polls, and notices what ends the recording.
type pacer struct {
	epoll    int
	stopFD   int // eventfd that stop sets
	exitFD   int // pidfd of the process
	keeperFD int // pidfd of the first keeper; -1 if there is none

	wait     time.Duration // adapts to how full the rings are
	longest  time.Duration // largest value of wait
	urgent   bool          // wait no longer than the shortest time
	exited   bool          // the process has ended
	orphaned bool          // a keeper has ended
}

// newPacer returns the pacer for a process and rings, given by their descriptors. The
// caller must close it.
func newPacer(exitFD int, rings []int) (*pacer, error) {
	p := &pacer{exitFD: exitFD, keeperFD: -1, wait: pollShortest, longest: pollLongest}
	var err error
	if p.stopFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make event descriptor: %w", err)
	}
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make epoll descriptor: %w", err)
	}
	for _, fd := range append([]int{p.stopFD, p.exitFD}, rings...) {
		events := uint32(unix.EPOLLIN)
		if fd != p.stopFD && fd != p.exitFD {
			// A ring with data is always readable; only a wake-up counts.
			events |= unix.EPOLLET
		}
		ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
		if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
			return nil, fmt.Errorf("watch ring: %w", err)
		}
	}
	return p, nil
}

// watchKeeper has pause notice the end of the keeper with the descriptor fd. The first
// call must come before the first pause; later calls may come from any goroutine.
func (p *pacer) watchKeeper(fd int) error {
	if p.keeperFD < 0 {
		p.keeperFD = fd
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.keeperFD)} // pause recognises all keepers by it
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("watch the process that holds the probes: %w", err)
	}
	return nil
}

// stop has pause report the end. It may be called from any goroutine, at any time, more
// than once.
func (p *pacer) stop() {
	one := [8]byte{1}
	_, _ = unix.Write(p.stopFD, one[:]) // EAGAIN: it is already set
}

// adapt changes the wait to how full the fullest ring is, from 0 to 1.
func (p *pacer) adapt(fullest float64) {
	switch {
	case fullest > 0.25:
		p.wait = max(p.wait/2, pollShortest)
	case fullest < 1.0/16:
		p.wait = min(p.wait*2, p.longest)
	}
}

// pause waits for a wake-up, at most for wait, and reports whether to stop. If more is
// set, events are left in the rings and it only looks for the end.
func (p *pacer) pause(more bool) (stop bool, err error) {
	wait := p.wait
	if p.urgent {
		wait = pollShortest
	}
	if more { // always true if the reader is slower than the process
		wait = 0
	}
	var events [8]unix.EpollEvent
	n, err := unix.EpollWait(p.epoll, events[:], int(wait/time.Millisecond))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return false, fmt.Errorf("wait for events: %w", err)
	}
	for i := range max(n, 0) {
		switch int(events[i].Fd) {
		case p.exitFD:
			p.exited = true
			stop = true
		case p.stopFD:
			stop = true
		case p.keeperFD:
			p.orphaned = true
			stop = true
		}
	}
	return stop, nil
}

// Close closes the descriptors.
func (p *pacer) Close() error {
	return errors.Join(unix.Close(p.epoll), unix.Close(p.stopFD))
}
