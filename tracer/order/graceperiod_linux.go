package order

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Grace tells up to which time no program runs any more. The kernel runs each in a
// critical section of RCU, so behind a grace period those have ended that ran when
// it began, be it that they were preempted, or the CPU itself by a hypervisor.
type Grace struct {
	passed  atomic.Uint64 // when the last grace period that is over began
	refused atomic.Bool   // the kernel does not tell
	wanted  chan struct{}
	running sync.WaitGroup
}

// StartGrace begins while no program writes anywhere yet. wait waits for a grace
// period.
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

// bound returns a time such that whatever a program writes from now on is younger
// than it, and has the next grace period waited for, which takes some 10 ms. The
// programs must read the time of what they write themselves.
func (g *Grace) bound(now uint64) uint64 {
	if g.refused.Load() {
		return now - perfSlack
	}
	select {
	case g.wanted <- struct{}{}:
	default: // one is waited for, and then another one
	}
	return g.passed.Load()
}

// Close waits for the grace period that is under way.
func (g *Grace) Close() error {
	close(g.wanted)
	g.running.Wait()
	return nil
}

// GracePeriod waits for a grace period of RCU, given the CPUs that are online.
// Kernels with CPUs that have no timer tick (nohz_full) refuse, and with a single
// CPU they return at once: for the programs' memory nothing has to be waited for.
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
