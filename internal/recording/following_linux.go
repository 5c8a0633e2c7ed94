package recording

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/family"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// following holds the processes that are followed, and the sessions of those that are
// traced.
type following struct {
	*family.Family
	most int // sessions at the same time

	mu       sync.Mutex
	sessions map[int]*session // that run, by process
	ended    map[int]bool     // processes of these that have ended, whose traces are being completed
	above    map[int]bool     // processes that ran untraced, because there were most sessions
	untraced int              // processes that could not be traced
}

// follow begins to follow the processes that run already.
func (r *Recording) follow() error {
	if r.options.Follow == nil {
		return nil
	}
	r.following = &following{
		Family: family.New(r.options.Follow.Wake), most: r.options.Follow.Most,
		sessions: map[int]*session{}, ended: map[int]bool{}, above: map[int]bool{},
	}
	r.options.Tracer.Features = host.RememberFeatures()
	if r.held != nil {
		return nil // it is followed when it is released
	}
	pids := r.options.PIDs
	if err := r.options.Tracer.Features.Capabilities(); err != nil {
		return fmt.Errorf("follow process %d: %w", pids[0], err)
	}
	for _, pid := range pids {
		if stat, err := proc.ReadStat(pid); err == nil && stat.KernelThread() {
			continue // its session reports that
		}
		if err := r.following.Follow(pid); err != nil && !errors.Is(err, family.ErrGone) {
			return err
		}
	}
	return nil
}

// take follows a held process, which runs then.
func (f *following) take(held Held) error {
	if command, ok := held.(Command); ok {
		return f.Adopt(command.Command)
	}
	return held.Release() // a process that was waited for is not followed
}

// add adds a session that runs.
func (f *following) add(x *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[x.pid] = x
}

// remove removes a session that has ended.
func (f *following) remove(x *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sessions[x.pid] == x {
		delete(f.sessions, x.pid)
		delete(f.ended, x.pid)
	}
}

// exited takes the end of a process. Its session ends soon.
func (f *following) exited(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sessions[pid] != nil {
		f.ended[pid] = true
	}
}

// ending returns a session that ends soon, if no other may begin before; else nil.
func (f *following) ending() *session {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sessions) < f.most {
		return nil
	}
	for pid := range f.ended {
		return f.sessions[pid]
	}
	return nil
}

// of returns the session of a process, or nil.
func (f *following) of(pid int) *session {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[pid]
}

// all returns the sessions that run, in the order of their processes.
func (f *following) all() (all []*session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pid := range slices.Sorted(maps.Keys(f.sessions)) {
		all = append(all, f.sessions[pid])
	}
	return all
}

// pass lets processes run that come while tracing is off. It reports whether all have
// ended.
func (f *following) pass(e family.Event) (ended bool) {
	if e.Kind == family.Gone {
		return e.Left == 0
	}
	f.Go(e.PID)
	return false
}

// descend begins the sessions of processes that come during a window, until it or all
// processes have ended.
func (r *Recording) descend(w *window) {
	for {
		select {
		case <-w.until.Done():
			return
		case e := <-r.following.Events():
			switch e.Kind {
			case family.Gone:
				r.following.exited(e.PID)
				if e.Left == 0 {
					return
				}
			case family.Born:
				r.born(e, w)
			case family.Became:
				r.became(e, w)
			}
		}
	}
}

// born begins the session of a new process.
func (r *Recording) born(e family.Event, w *window) {
	f := r.following
	defer f.Go(e.PID)
	if f.of(e.PID) != nil { // tracing was switched on meanwhile
		return
	}
	if r.tooMany(e.PID) {
		f.Drop(e.PID)
		return
	}
	if err := w.trace(r.descendant(e.PID)); err != nil {
		r.refused(err)
	}
}

// descendant returns a session of a process that is followed.
func (r *Recording) descendant(pid int) *session {
	x := r.newSession(pid)
	x.child = !slices.Contains(r.options.PIDs, pid)
	return x
}

// reportedUntraced is how many untraced processes are reported one by one. The result
// contains their number.
const reportedUntraced = 10

// tooMany reports whether no more processes can be traced now, and passes that to the
// Reporter. It waits for sessions whose processes have ended.
func (r *Recording) tooMany(pid int) bool {
	f := r.following
	for x := f.ending(); x != nil; x = f.ending() {
		<-x.over
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sessions) < f.most {
		return false
	}
	if !f.above[pid] && len(f.above) < reportedUntraced {
		r.options.Report.TooMany(pid, len(f.sessions))
	}
	f.above[pid] = true
	return true
}

// became continues the session of a process that has executed another program, or begins
// another session.
func (r *Recording) became(e family.Event, w *window) {
	f := r.following
	old := f.of(e.PID)
	x := r.descendant(e.PID)
	var err error
	x.made, err = plan.New(r.tracerOptions(x))
	switch {
	case err == nil && old != nil && !e.Thread && old.probes.tracer.Plan().Covers(x.made):
		_ = x.made.Close() // it was only compared
		x.root.Close()
		f.Go(e.PID)
		return
	case !e.Last && (errors.Is(err, host.ErrNoAllocator) || errors.Is(err, host.ErrStripped)):
		x.root.Close()
		f.Next(e.PID)
		return
	}
	defer f.Go(e.PID)
	if old != nil {
		old.replaced.Store(true)
		old.probes.stop()
	}
	switch {
	case err != nil:
		x.root.Close()
		if old != nil {
			<-old.over // the rest of its probes might do harm now
		}
	case old == nil && r.tooMany(e.PID):
		x.root.Close()
		_ = x.made.Close() // nothing was done with it
	default:
		err = w.trace(x)
	}
	if err != nil {
		r.refused(err)
	}
}

// refused counts and reports a process that is not traced, unless it has ended.
func (r *Recording) refused(err error) {
	if errors.Is(err, host.ErrNoProcess) || errors.Is(err, host.ErrZombie) {
		return // it was killed while it was held
	}
	f := r.following
	f.mu.Lock()
	f.untraced++
	f.mu.Unlock()
	r.options.Report.Refused(err)
}
