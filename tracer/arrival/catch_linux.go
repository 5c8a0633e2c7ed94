package arrival

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/launch"
)

// catch is the process that has arrived.
type catch struct {
	pid      int
	taken    *launch.Taken // nil if it is not held
	err      error         // why it could not be held
	requests chan func()   // functions for the thread that holds it, because no other thread may
}

// do runs f in the thread that holds the process.
func (c *catch) do(f func()) {
	done := make(chan bool)
	c.requests <- func() { f(); close(done) }
	<-done
}

func (c *catch) answer() answer {
	a := answer{PID: c.pid, Ended: errors.Is(c.err, launch.ErrEnded)}
	if c.err != nil {
		a.Err = fmt.Sprintf("process %d started but cannot be held: %v; it runs untraced", c.pid, c.err)
	}
	return a
}

// watch starts the threads that wait for the process. There are two, each on one half of the
// processors, because the process keeps one of the processors busy until it is held.
func (h *holder) watch() error {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("find the usable processors: %w", err)
	}
	var halves [2]unix.CPUSet
	n := 0
	for cpu := range len(all) * 64 {
		if all.IsSet(cpu) {
			halves[n%2].Set(cpu)
			n++
		}
	}
	var come atomic.Bool
	for i := range min(n, len(halves)) {
		go h.wait(&halves[i], &come)
	}
	return nil
}

// wait waits for the process. The first thread that sees the process holds it.
func (h *holder) wait(processors *unix.CPUSet, come *atomic.Bool) {
	runtime.LockOSThread()                   // never unlocked
	_ = unix.SchedSetaffinity(0, processors) // it works on any processor as well
	fds := []unix.PollFd{{Fd: wakesFD, Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
	if !come.CompareAndSwap(false, true) {
		return
	}
	c := &catch{requests: make(chan func())}
	now, err := h.arrivals.taken()
	if err == nil {
		c.pid = int(now.Pid)
		c.taken, err = launch.Take(c.pid, h.arrivals.stopped)
	}
	if err != nil {
		c.err = errors.Join(err, h.arrivals.resume())
	}
	h.caught <- c
	for f := range c.requests {
		f()
	}
}
