package order

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Grace knows a time before which every program has finished. The kernel runs each
// program in a critical section of RCU. After a grace period, therefore, all programs
// that ran at its beginning have ended, even if they were preempted or a hypervisor
// stopped their CPU.
type Grace struct {
	passed  atomic.Uint64 // when the last completed grace period began
	refused atomic.Bool   // the kernel does not wait for grace periods
	wanted  chan struct{}
	running sync.WaitGroup
}

// StartGrace starts a Grace. No program may write to a buffer yet. wait waits for one
// grace period.
func StartGrace(wait func() error) *Grace {
	g := &Grace{wanted: make(chan struct{}, 1)}
	g.passed.Store(Clock())
	g.running.Go(func() {
		for range g.wanted {
			began := Clock()
			if wait() != nil {
				g.refused.Store(true)
				return
			}
			g.passed.Store(began)
		}
	})
	return g
}

// bound returns a time: all that a program writes from now on has a later one. It also
// requests the next grace period, which takes about 10 ms. The programs must read the
// time of each record themselves. If the kernel refuses to wait, the bound is now less
// perfSlack.
func (g *Grace) bound(now uint64) uint64 {
	if g.refused.Load() {
		return now - perfSlack
	}
	select {
	case g.wanted <- struct{}{}:
	default: // one more grace period is already requested
	}
	return g.passed.Load()
}

// Close waits for the requested grace periods and ends the goroutine.
func (g *Grace) Close() error {
	close(g.wanted)
	g.running.Wait()
	return nil
}

// GracePeriod waits for a grace period of RCU; cpus are the online CPUs. Kernels with
// CPUs that have no timer tick (nohz_full) refuse. With a single CPU the kernel returns
// at once, since membarrier need not wait there, so GracePeriod returns an error.
func GracePeriod(cpus []int) error {
	if len(cpus) < 2 {
		return errors.New("wait for a grace period: kernels do not with a single CPU")
	}
	const global = 1 // MEMBARRIER_CMD_GLOBAL of include/uapi/linux/membarrier.h
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0); errno != 0 {
		return fmt.Errorf("wait for a grace period: %w", errno)
	}
	return nil
}
