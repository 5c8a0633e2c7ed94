package family

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer/launch"
)

// Reasons why a process cannot be followed.
var (
	ErrTraced = errors.New("it is held by ptrace already") // by gdb, strace or the like
	ErrGone   = errors.New("it has ended")
)

// Follow starts to follow a running process, all its threads, and its future descendants. The
// process is not held.
func (f *Family) Follow(pid int) error {
	err := ErrGone
	f.do(func() { err = f.seizeAll(pid) })
	if err != nil {
		return fmt.Errorf("follow process %d: %w", pid, err)
	}
	return nil
}

// seizeAll seizes all threads of a process, including those that are made in the meantime. After
// an error they are released.
func (f *Family) seizeAll(pid int) error {
	for more := true; more; {
		more = false
		threads, err := proc.Threads(pid)
		if err != nil {
			break // it has ended
		}
		for _, t := range threads {
			if f.threads[t.TID] != nil {
				continue
			}
			taken, err := f.seize(t.TID)
			if err != nil {
				f.leave(pid)
				return err
			}
			if taken {
				f.add(pid, t.TID)
				more = true
			}
		}
	}
	if f.processes[pid] == nil {
		return ErrGone
	}
	return nil
}

// seize seizes a thread. It does nothing for a thread that ends, or that the kernel has attached
// together with the thread that made it.
func (f *Family) seize(tid int) (taken bool, err error) {
	err = ptraceSeize(tid)
	if err == nil {
		return true, nil
	}
	status, gone := proc.ReadStatus(tid)
	switch {
	case gone != nil, status.State.Ended(), status.TracerPID == f.tid, errors.Is(err, unix.ESRCH):
		return false, nil
	case status.TracerPID == 0:
		return false, fmt.Errorf("hold it by ptrace: %w", err)
	}
	who := fmt.Sprintf("process %d", status.TracerPID)
	if holder, err := proc.ReadStatus(status.TracerPID); err == nil {
		who = fmt.Sprintf("%s (process %d)", printable.Name(holder.Name), holder.TGID)
	}
	return false, fmt.Errorf("%w, by %s, and only one process can do that", ErrTraced, who)
}

// add starts to follow a thread.
func (f *Family) add(pid, tid int) *thread {
	p := f.processes[pid]
	if p == nil {
		p = &process{threads: map[int]*thread{}}
		f.processes[pid] = p
	}
	t := &thread{tid: tid, pid: pid}
	p.threads[tid], f.threads[tid] = t, t
	return t
}

// leave lets go of a process that is not held.
func (f *Family) leave(pid int) {
	p := f.processes[pid]
	if p == nil {
		return
	}
	for _, t := range p.threads {
		t.leaving = true
		_ = unix.PtraceInterrupt(t.tid) // it may have ended
	}
}

// Adopt follows a command that is held by the thread that started it, and lets it run.
func (f *Family) Adopt(c *launch.Command) error {
	err := error(nil)
	f.do(func() { err = f.adopt(c) })
	if err != nil {
		return fmt.Errorf("follow the command: %w", err)
	}
	return nil
}

// adopt takes the command over from the thread that holds it. If this program is killed between
// the two steps, the command stays stopped. Such a moment is unavoidable, because a process that
// is held from its start cannot be seized.
func (f *Family) adopt(c *launch.Command) error {
	stops, err := c.HandOver()
	if err != nil {
		return err
	}
	pid := c.PID()
	taken, err := f.seize(pid)
	if err != nil {
		c.Signal(unix.SIGCONT)
		return err
	}
	if !taken { // it was killed
		f.queue = append(f.queue, Event{Kind: Gone, PID: pid, Left: len(f.processes)})
		return nil
	}
	t := f.add(pid, pid)
	t.waking, t.stops = true, stops
	f.processes[pid].command = c
	f.look()
	return nil
}
