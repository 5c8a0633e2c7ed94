package family

import (
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/launch"
)

// Kind is what has happened to a process.
type Kind uint8

// The kinds of events.
const (
	Born   Kind = iota // another process has made it; it is held
	Became             // it has executed another program, whose libraries are mapped; it is held
	Gone               // it has ended, or is not followed any more
)

// Event is what has happened to a process.
type Event struct {
	Kind   Kind
	PID    int
	Parent int  // for Born; 0 if unknown
	Thread bool // for Became: a thread other than the main one made the exec
	Last   bool // for Became: there is no further place for Next
	Left   int  // for Gone: number of processes that are still followed
}

// Family is the processes that are followed. Several goroutines may call its methods. The owner
// of a family must receive its events: processes that are held wait for that.
type Family struct {
	wake     <-chan os.Signal
	events   chan Event
	requests chan func()
	over     chan struct{} // closed when the thread has finished
	closing  sync.Once
	end      chan struct{} // closed to end the thread

	// The following fields belong to the thread.
	tid       int
	threads   map[int]*thread
	processes map[int]*process
	queue     []Event
}

// process is a process that is followed.
type process struct {
	threads map[int]*thread
	command *launch.Command // nil if this program has not started the process
	held    bool
	other   bool // a thread other than the main one made the last exec
}

// thread is a thread of a followed process.
type thread struct {
	tid, pid  int
	beginning *launch.Beginning // set while the thread is on its way through the loader
	calls     int               // system calls that it may still make on the way
	stops     []unix.Signal     // signals to send when it runs
	waking    bool              // a SIGSTOP of our own is pending
	leaving   bool              // to be released at its next stop
}

// New returns a family without processes. wake must receive every SIGCHLD from before the call.
// The caller must call Close.
func New(wake <-chan os.Signal) *Family {
	f := &Family{
		wake: wake, events: make(chan Event), requests: make(chan func()), over: make(chan struct{}), end: make(chan struct{}),
		threads: map[int]*thread{}, processes: map[int]*process{},
	}
	started := make(chan struct{})
	go f.start(started)
	<-started
	return f
}

// start locks a thread and serves from it: to the kernel, the tracer of a process is a
// thread. The thread ends with the family, and the kernel then detaches it from the
// processes. An unfit thread stays locked until another one has been found, so that the
// runtime offers it only once.
func (f *Family) start(started chan<- struct{}) {
	runtime.LockOSThread()
	if !fit() {
		elsewhere := make(chan struct{})
		go f.start(elsewhere)
		<-elsewhere
		runtime.UnlockOSThread()
		close(started)
		return
	}
	f.tid = unix.Gettid()
	close(started)
	f.serve()
}

// fit reports whether the calling thread, which must be locked, can hold processes. The
// main thread cannot, since it does not end. Nor can a thread that has started a child
// process: the kernel would report the end of that child to the family as well, and
// the code that started the child could no longer wait for it.
func fit() bool {
	return unix.Gettid() != os.Getpid() && childless()
}

// serve is the main loop of the thread.
func (f *Family) serve() {
	defer close(f.over)
	for {
		var events chan<- Event
		var next Event
		if len(f.queue) > 0 {
			events, next = f.events, f.queue[0]
		}
		select {
		case <-f.end:
			return
		case <-f.wake:
			f.look()
		case do := <-f.requests:
			do()
		case events <- next:
			f.queue = f.queue[1:]
		}
	}
}

// do runs what in the thread. It does nothing if the family is closed.
func (f *Family) do(what func()) {
	done := make(chan struct{})
	select {
	case f.requests <- func() { what(); close(done) }:
		<-done
	case <-f.over:
	}
}

// Events returns the channel of events, in their order.
func (f *Family) Events() <-chan Event { return f.events }

// Go lets a process run that is held.
func (f *Family) Go(pid int) {
	f.do(func() {
		if t := f.held(pid); t != nil {
			t.beginning = nil
			f.resume(t, 0)
		}
	})
}

// callsToNext is the most system calls that a process makes on its way to a further place.
const callsToNext = 512

// Next is for a process that has executed another program and has no allocator at the place where
// it is held. It lets the process run until more is mapped. Another event follows then.
func (f *Family) Next(pid int) {
	f.do(func() {
		if t := f.held(pid); t != nil {
			t.calls = min(t.calls, callsToNext)
			f.resume(t, 0)
		}
	})
}

// Drop lets a process go that is held, and stops following it.
func (f *Family) Drop(pid int) {
	f.do(func() {
		if t := f.held(pid); t != nil {
			_ = unix.PtraceDetach(t.tid) // it may have been killed
			f.forget(t.tid)
		}
	})
}

// held returns the thread of a process that is held, and marks the process as running.
func (f *Family) held(pid int) *thread {
	p := f.processes[pid]
	if p == nil || !p.held {
		return nil
	}
	p.held = false
	return p.threads[pid]
}

// PIDs returns the IDs of the processes that are followed.
func (f *Family) PIDs() (all []int) {
	f.do(func() {
		for pid := range f.processes {
			all = append(all, pid)
		}
	})
	return all
}

// lookEvery is how often Close checks whether the thread has ended.
const lookEvery = time.Millisecond

// Close lets go of all processes. When it returns, none is held any more.
func (f *Family) Close() {
	f.closing.Do(func() {
		close(f.end)
		<-f.over
		// The kernel releases them before the thread disappears.
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		for unix.Tgkill(os.Getpid(), f.tid, 0) == nil {
			<-look.C
		}
	})
}
