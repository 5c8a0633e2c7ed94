package family

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer/launch"
)

// Why a process cannot be followed.
var (
	ErrTraced = errors.New("it is held by ptrace already") // by gdb, strace or the like
	ErrGone   = errors.New("it has ended")
)

// Follow begins to follow a process that runs, all its threads, and who comes from it
// from now on. It is not held.
func (f *Family) Follow(pid int) error {
	err := ErrGone
	f.do(func() { err = f.seizeAll(pid) })
	if err != nil {
		return fmt.Errorf("follow process %d: %w", pid, err)
	}
	return nil
}

// seizeAll takes all threads of a process, also those that come meanwhile. After an
// error they are let go.
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

// seize takes a thread. One that ends, or that the kernel has given to us with the
// thread that made it, is not taken.
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
	return false, fmt.Errorf("%w, by %s, and only one can do that", ErrTraced, who)
}

// add begins to follow a thread.
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

// Adopt follows a command that is held by who started it, and lets it run.
func (f *Family) Adopt(c *launch.Command) error {
	err := error(nil)
	f.do(func() { err = f.adopt(c) })
	if err != nil {
		return fmt.Errorf("follow the command: %w", err)
	}
	return nil
}

// adopt takes the command from the thread that has held it. Whoever is killed between
// the two leaves it stopped; there is no way without such a moment, for who is held from
// its start cannot be seized.
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
