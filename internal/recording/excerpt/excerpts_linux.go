package excerpt

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/trace"
)

// Options select where traces go, and in which format.
type Options struct {
	Output   output.Options
	Format   string
	Encoding encoder.Options
}

// Excerpts switches traces on and off: one for each process of a recording. Its methods may be
// called by several goroutines.
type Excerpts struct {
	options Options

	mu     sync.Mutex // of what follows
	all    []*writer  // of the processes that are recorded
	on     bool
	failed error // of traces that ended with an error
}

// New returns an Excerpts that is switched off.
func New(o Options) *Excerpts { return &Excerpts{options: o} }

// ErrEnded reports that no process is recorded any more.
var ErrEnded = errors.New("no process is traced any more")

// Writer returns the writer of a session. It passes the records of its process on to another
// writer, which it closes.
func (e *Excerpts) Writer(pid int, to trace.Writer) trace.Writer {
	w := &writer{of: e, pid: pid, to: to}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, w)
	if e.on {
		e.failed = errors.Join(e.failed, w.start(now()))
	}
	return w
}

// Start begins a trace of each process, with the calls from now on, and returns their paths. After
// an error, none is left.
func (e *Excerpts) Start() (paths []string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.all) == 0 {
		return nil, ErrEnded
	}
	from := now()
	for i, w := range e.all {
		if err := w.start(from); err != nil {
			for _, other := range e.all[:i] {
				err = errors.Join(err, other.discard())
			}
			return nil, err
		}
	}
	e.on = true
	return e.paths(), nil
}

// Stop ends the traces with the calls up to now, and returns their paths when they are complete.
// The error is also that of traces that have failed before.
func (e *Excerpts) Stop() (paths []string, err error) {
	e.mu.Lock()
	paths, e.on = e.paths(), false
	to := now()
	var waits []<-chan struct{}
	for _, w := range e.all {
		if done := w.stop(to); done != nil {
			waits = append(waits, done)
		}
	}
	e.mu.Unlock()
	for _, done := range waits {
		<-done
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	err, e.failed = e.failed, nil
	return paths, err
}

// On reports whether traces are written.
func (e *Excerpts) On() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.on
}

// Paths returns the traces that are being written.
func (e *Excerpts) Paths() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.paths()
}

func (e *Excerpts) paths() (all []string) {
	for _, w := range e.all {
		if path := w.path(); path != "" {
			all = append(all, path)
		}
	}
	return all
}

// Err returns the errors of traces that Stop has not returned.
func (e *Excerpts) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed
}

// fail notes that a trace has ended with an error.
func (e *Excerpts) fail(path string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = errors.Join(e.failed, fmt.Errorf("trace %s: %w", path, err))
}

// remove forgets the writer of a process whose recording has ended.
func (e *Excerpts) remove(w *writer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.all {
		if e.all[i] == w {
			e.all = append(e.all[:i:i], e.all[i+1:]...)
			return
		}
	}
}

// now returns the time of the tracer's clock, in nanoseconds.
func now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return ts.Nano()
}
