package order

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/ring"
)

// Limits of a subscription to single threads. It needs an event, with a file descriptor,
// for each thread and CPU, and the kernel makes one per CPU for each new thread of the
// process (docs/performance.md has the costs). On a machine with more CPUs than
// mostTaskCPUs the tracer uses it only when other processes fill the buffers.
const (
	mostTaskCPUs = 16
	mostListings = 16 // how often cover lists the threads while new ones appear
)

// errManyThreads reports that a process has too many threads for a subscription to single
// threads.
var errManyThreads = errors.New("the process has too many threads for an event per thread and CPU")

// inheritThread is the bit inherit_thread of a perf event's attributes (Linux 5.13): new
// threads inherit the event, child processes do not.
const inheritThread = 1 << 35

// Subscription holds the perf events through which the kernel records mappings, names,
// forks and exits.
type Subscription struct {
	perTask bool   // events of the threads of one process, not of the whole machine
	leader  bool   // the main thread has events
	Since   uint64 // when it began
	FDs     []int
	Leaders []unix.PollFd // the main thread's events
}

// Ended reports whether the kernel has closed an event of the main thread.
func (s *Subscription) Ended() bool {
	if len(s.Leaders) == 0 {
		return false
	}
	n, err := unix.Poll(s.Leaders, 0)
	return err == nil && n > 0 && slices.ContainsFunc(s.Leaders, func(fd unix.PollFd) bool { return fd.Revents&unix.POLLHUP != 0 })
}

// subscribeMachine subscribes to the records of all processes.
func subscribeMachine(cpus []int, rings []*ring.Perf) (*Subscription, error) {
	s := &Subscription{}
	for i, cpu := range cpus {
		if err := s.open(subscribingAttr(0), -1, cpu, rings[i]); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// SubscribeThreads subscribes to the records of all threads of a process and of the
// threads that they make. limit is the maximum number of events. For a process that has
// ended, the subscription has no events.
func SubscribeThreads(pid int, cpus []int, rings []*ring.Perf, limit int) (*Subscription, error) {
	s := &Subscription{perTask: true, Since: Clock()}
	if err := s.cover(pid, cpus, rings, limit); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// cover lists the threads until it finds none without events. A thread that appears
// meanwhile may or may not have inherited events, since the thread that made it may have
// had none yet. It gets its own events; lastRecord filters repetitions.
func (s *Subscription) cover(pid int, cpus []int, rings []*ring.Perf, limit int) error {
	covered := map[int]bool{}
	for range mostListings {
		tids, err := proc.ThreadIDs(pid)
		if err != nil {
			return nil //nolint:nilerr // the process has ended
		}
		fresh := false
		for _, tid := range tids {
			if covered[tid] {
				continue
			}
			covered[tid], fresh = true, true
			if len(covered)*len(cpus) > limit {
				return errManyThreads
			}
			there, err := s.openThread(tid, cpus, rings)
			if err != nil {
				return err
			}
			if there && tid == pid {
				s.leader = true
				for _, fd := range s.FDs[len(s.FDs)-len(cpus):] {
					s.Leaders = append(s.Leaders, unix.PollFd{Fd: int32(fd)})
				}
			}
		}
		// If threads end while they are listed, the list can lack others.
		status, err := proc.ReadStatus(pid)
		if err != nil || !fresh && len(tids) >= status.Threads {
			return nil //nolint:nilerr // as above
		}
	}
	return fmt.Errorf("%w: they come and go too fast", errManyThreads)
}

// openThread opens the events of one thread. there is false if the thread has ended.
func (s *Subscription) openThread(tid int, cpus []int, rings []*ring.Perf) (there bool, err error) {
	for i, cpu := range cpus {
		err = s.open(subscribingAttr(unix.PerfBitInherit|inheritThread), tid, cpu, rings[i])
		if errors.Is(err, unix.EINVAL) { // before Linux 5.13; parse leaves out the records of child processes
			err = s.open(subscribingAttr(unix.PerfBitInherit), tid, cpu, rings[i])
		}
		if errors.Is(err, unix.ESRCH) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// subscribingAttr describes an event for the records of executable mappings, names, forks
// and exits.
func subscribingAttr(more uint64) *unix.PerfEventAttr {
	attr := sidebandAttr()
	attr.Bits |= unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitComm | unix.PerfBitCommExec | unix.PerfBitTask | more
	return attr
}

func (s *Subscription) open(attr *unix.PerfEventAttr, tid, cpu int, to *ring.Perf) error {
	fd, err := ring.OpenPerf(attr, tid, cpu)
	if err != nil {
		return err
	}
	s.FDs = append(s.FDs, fd)
	return to.Redirect(fd)
}

// Close closes the events.
func (s *Subscription) Close() error {
	var all []error
	for _, fd := range s.FDs {
		all = append(all, unix.Close(fd))
	}
	s.FDs = nil
	return errors.Join(all...)
}
