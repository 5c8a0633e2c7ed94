package family

import (
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/launch"
)

// Kind says what has happened to a process.
type Kind uint8

// What happens.
const (
	Born   Kind = iota // another one has made it; it is held
	Became             // it has become another program, the libraries of which are mapped; it is held
	Gone               // it has ended, or is held no more
)

// Event is what has happened to a process.
type Event struct {
	Kind   Kind
	PID    int
	Parent int  // of Born; 0 if that is not known
	Thread bool // of Became: another thread than the main one did it
	Last   bool // of Became: Next leads nowhere
	Left   int  // of Gone: processes that are still followed
}

// Family is the processes that are followed. Its methods may be called by several
// goroutines. Who has a family takes its events: what is held waits for that.
type Family struct {
	wake     <-chan os.Signal
	events   chan Event
	requests chan func()
	over     chan struct{} // closed when nothing is done any more
	closing  sync.Once
	end      chan struct{} // closed to end the thread

	// What follows is the thread's.
	tid       int
	threads   map[int]*thread
	processes map[int]*process
	queue     []Event
}

// process is one that is followed.
type process struct {
	threads map[int]*thread
	command *launch.Command // that it is; nil if this program has not started it
	held    bool
	other   bool // another thread than the main one made the last exec
}

// thread is one of a followed process.
type thread struct {
	tid, pid  int
	beginning *launch.Beginning // it is on its way through the loader; else nil
	calls     int               // system calls that it may still make on that way
	stops     []unix.Signal     // that it is to have when it runs
	waking    bool              // a SIGSTOP that nobody has sent is on its way to it
	leaving   bool              // it is let go at its next stop
}

// New returns a family without processes. wake must be told of each SIGCHLD from before
// on. The caller must Close it.
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
// whoever started the child could no longer wait for it.
func fit() bool {
	return unix.Gettid() != os.Getpid() && childless()
}

// serve is what the thread does.
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

// do has the thread do something. It is not done if the family is closed.
func (f *Family) do(what func()) {
	done := make(chan struct{})
	select {
	case f.requests <- func() { what(); close(done) }:
		<-done
	case <-f.over:
	}
}

// Events returns the channel of what happens, in that order.
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

// callsToNext is how many system calls a process makes at most on its way to a
// further place.
const callsToNext = 512

// Next lets a process that has become another program, and has no allocator where it
// is held, run to where more is mapped. Another event tells when it is there.
func (f *Family) Next(pid int) {
	f.do(func() {
		if t := f.held(pid); t != nil {
			t.calls = min(t.calls, callsToNext)
			f.resume(t, 0)
		}
	})
}

// Drop lets a process go that is held, and follows it no longer.
func (f *Family) Drop(pid int) {
	f.do(func() {
		if t := f.held(pid); t != nil {
			_ = unix.PtraceDetach(t.tid) // it may have been killed
			f.forget(t.tid)
		}
	})
}

// held returns the thread of a process that is held, which runs from then on.
func (f *Family) held(pid int) *thread {
	p := f.processes[pid]
	if p == nil || !p.held {
		return nil
	}
	p.held = false
	return p.threads[pid]
}

// PIDs returns the processes that are followed.
func (f *Family) PIDs() (all []int) {
	f.do(func() {
		for pid := range f.processes {
			all = append(all, pid)
		}
	})
	return all
}

// lookEvery is how often it is looked whether a thread has ended.
const lookEvery = time.Millisecond

// Close lets go of all processes. When it returns they are held no more.
func (f *Family) Close() {
	f.closing.Do(func() {
		close(f.end)
		<-f.over
		// The kernel lets go of them before it forgets the thread.
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		for unix.Tgkill(os.Getpid(), f.tid, 0) == nil {
			<-look.C
		}
	})
}
