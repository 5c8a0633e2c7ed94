package family

import (
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/launch"
)

// callsInLoader is the most system calls that a program may make before its libraries are mapped.
// A program that makes more begins in an unknown way.
const callsInLoader = 1 << 16

// look handles all pending status changes of threads.
func (f *Family) look() {
	for {
		info, there := peek()
		if !there {
			return
		}
		tid := int(info.pid)
		if c := f.command(tid); c != nil && info.ended() {
			c.Take()
			f.forget(tid)
			continue
		}
		status, there := take(tid)
		switch {
		case !there:
			return // the same status is there again: a SIGCHLD will follow
		case status.Stopped():
			f.stopped(tid, status)
		default:
			f.forget(tid)
		}
	}
}

// command returns the command whose main thread is tid, or nil.
func (f *Family) command(tid int) *launch.Command {
	if p := f.processes[tid]; p != nil {
		return p.command
	}
	return nil
}

// stopped handles a thread that has stopped.
func (f *Family) stopped(tid int, status unix.WaitStatus) {
	t := f.threads[tid]
	event, sig := int(status)>>16, status.StopSignal()
	if t == nil {
		f.first(tid, event, sig)
		return
	}
	woken := t.waking
	t.waking = false
	switch {
	case t.leaving:
		if event != 0 || sig == unix.SIGTRAP|syscallStop {
			sig = 0
		}
		_ = ptraceDetach(tid, sig) // it may have been killed
		f.forget(tid)
	case woken:
		f.woken(t, event, sig)
	case event == unix.PTRACE_EVENT_STOP && launch.Stops(sig):
		_ = ptraceListen(tid) // likewise
	case event == unix.PTRACE_EVENT_EXEC:
		f.became(t)
	case event != 0:
		f.resume(t, 0)
	case sig == unix.SIGTRAP|syscallStop:
		f.called(t)
	default:
		f.resume(t, sig)
	}
}

// first handles the first stop of a thread that another one has made: a new process is held.
func (f *Family) first(tid, event int, sig unix.Signal) {
	status, err := proc.ReadStatus(tid)
	if err != nil {
		_ = unix.PtraceCont(tid, 0) // it was killed
		return
	}
	t := f.add(status.TGID, tid)
	switch {
	case status.TGID == tid:
		f.processes[tid].held = true
		f.queue = append(f.queue, Event{Kind: Born, PID: tid, Parent: status.PPID})
	case event == unix.PTRACE_EVENT_STOP && launch.Stops(sig):
		_ = ptraceListen(tid) // it may have been killed
	default:
		f.resume(t, 0)
	}
}

// woken handles the first stop of a command that was handed over stopped.
func (f *Family) woken(t *thread, event int, sig unix.Signal) {
	switch {
	case event == unix.PTRACE_EVENT_STOP && launch.Stops(sig): // it has taken the signal
		_ = unix.Kill(t.pid, unix.SIGCONT)
		f.resume(t, 0)
	case sig == unix.SIGSTOP:
		f.resume(t, 0)
	default:
		f.resume(t, sig)
	}
	for _, sig := range t.stops {
		_ = unix.Kill(t.pid, sig) // it may have ended
	}
	t.stops = nil
}

// became handles an exec. Only one thread is left, which now has the ID of the main thread.
func (f *Family) became(t *thread) {
	p := f.processes[t.pid]
	for tid := range p.threads {
		if tid != t.tid {
			delete(p.threads, tid)
			delete(f.threads, tid)
		}
	}
	former, err := unix.PtraceGetEventMsg(t.tid)
	if err != nil {
		f.resume(t, 0) // it was killed
		return
	}
	t.beginning, err = launch.BeginningOf(t.pid)
	t.calls = callsInLoader
	p.other = int(former) != t.tid
	if err != nil || t.beginning.AtOnce() {
		f.hold(t, err != nil || t.beginning.Static())
		return
	}
	f.resume(t, 0)
}

// called handles a stop at a system call, on the way through the loader.
func (f *Family) called(t *thread) {
	if t.beginning == nil {
		f.resume(t, 0)
		return
	}
	t.calls--
	there, err := t.beginning.Mapped()
	switch last := err != nil || t.calls <= 0; {
	case there || last:
		f.hold(t, last)
	default:
		f.resume(t, 0)
	}
}

// hold holds a process at the start of another program.
func (f *Family) hold(t *thread, last bool) {
	p := f.processes[t.pid]
	p.held = true
	f.queue = append(f.queue, Event{Kind: Became, PID: t.pid, Thread: p.other, Last: last})
}

// resume lets a thread run, with a signal or 0 for none.
func (f *Family) resume(t *thread, sig unix.Signal) {
	how := unix.PtraceCont
	if t.beginning != nil {
		how = unix.PtraceSyscall
	}
	_ = how(t.tid, int(sig)) // it may have been killed
}

// forget removes a thread that has ended or is not held any more.
func (f *Family) forget(tid int) {
	t := f.threads[tid]
	if t == nil {
		return
	}
	delete(f.threads, tid)
	p := f.processes[t.pid]
	delete(p.threads, tid)
	// The end of the main thread is reported last.
	if len(p.threads) > 0 && tid != t.pid {
		return
	}
	for other := range p.threads {
		delete(f.threads, other)
	}
	delete(f.processes, t.pid)
	f.queue = append(f.queue, Event{Kind: Gone, PID: t.pid, Left: len(f.processes)})
}
