package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer"
	"rtrace-bpf/tracer/family"
)

// following is who is followed, and who of them is traced.
type following struct {
	*family.Family
	most int

	mu       sync.Mutex
	sessions map[int]*session // that run, by process
	ended    map[int]bool     // processes of these that have ended: their traces are being completed
	above    map[int]bool     // processes that ran untraced, since there were enough
	untraced int              // processes that could not be traced
}

// follow begins to follow the processes that run already.
func (r *recording) follow() error {
	if !r.config.follow.on {
		return nil
	}
	wake := make(chan os.Signal, 1)
	signal.Notify(wake, unix.SIGCHLD)
	r.following = &following{Family: family.New(wake), most: r.config.follow.most, sessions: map[int]*session{}, ended: map[int]bool{}, above: map[int]bool{}}
	r.options.Features = tracer.RememberFeatures()
	if r.held != nil {
		return nil // it is when it is let go
	}
	// Stopped, this program would hold up what it follows.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTSTP)
	if err := r.options.Features.Capabilities(); err != nil {
		return (&session{pid: r.pids[0]}).explain(fmt.Errorf("follow process %d: %w", r.pids[0], err))
	}
	for _, pid := range r.pids {
		if stat, err := proc.ReadStat(pid); err == nil && stat.KernelThread() {
			continue // of which its session tells
		}
		if err := r.following.Follow(pid); err != nil && !errors.Is(err, family.ErrGone) {
			return err
		}
	}
	return nil
}

// take follows the command that is held, which runs then.
func (f *following) take(held heldProcess) error {
	if command, ok := held.(ownCommand); ok {
		return f.Adopt(command.Command)
	}
	return held.Release() // of --wait, which goes without following
}

// add notes that a session runs.
func (f *following) add(x *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[x.pid] = x
}

// remove notes that it does not any more.
func (f *following) remove(x *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sessions[x.pid] == x {
		delete(f.sessions, x.pid)
		delete(f.ended, x.pid)
	}
}

// end notes that a process has ended. Its session is about to.
func (f *following) end(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sessions[pid] != nil {
		f.ended[pid] = true
	}
}

// ending returns a session that is about to end, or nil. There is none either if another
// one may begin now.
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

// missing tells what was not traced.
func (f *following) missing() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.above) > 0 {
		all = append(all, fmt.Sprintf("%d processes ran untraced, since %d were traced already", len(f.above), f.most))
	}
	if f.untraced > 0 {
		all = append(all, fmt.Sprintf("%d processes that were followed could not be traced", f.untraced))
	}
	return all
}

// begun are the processes of a new window: those that are named, and who came from them.
func (r *recording) begun() []int {
	if r.following == nil {
		return r.pids
	}
	all := slices.Clone(r.pids)
	for _, pid := range r.following.PIDs() {
		if !slices.Contains(all, pid) {
			all = append(all, pid)
		}
	}
	return all
}

// descend gives each process that comes into the family a session, until all have
// ended or during has, the time of a window.
func (r *recording) descend(ctx, during context.Context, stop func(), running *sync.WaitGroup) {
	begin := func(x *session) error { return r.trace(ctx, during, x, stop, running) }
	for {
		select {
		case <-during.Done():
			return
		case e := <-r.following.Events():
			switch e.Kind {
			case family.Gone:
				r.following.end(e.PID)
				if e.Left == 0 {
					return
				}
			case family.Born:
				r.born(e, begin)
			case family.Became:
				r.became(e, begin)
			}
		}
	}
}

// pass lets go of what happens while tracing is off. It says whether all have ended.
func (f *following) pass(e family.Event) (ended bool) {
	if e.Kind == family.Gone {
		return e.Left == 0
	}
	f.Go(e.PID)
	return false
}

// born begins the session of a process that another one has made.
func (r *recording) born(e family.Event, begin func(x *session) error) {
	f := r.following
	defer f.Go(e.PID)
	if f.of(e.PID) != nil { // tracing was switched on meanwhile
		return
	}
	if r.tooMany(e.PID) {
		f.Drop(e.PID)
		return
	}
	if err := begin(r.descendant(e.PID)); err != nil {
		r.refused(err)
	}
}

// descendant makes a session of a process that is followed.
func (r *recording) descendant(pid int) *session {
	x := r.newSession(pid)
	x.child = !slices.Contains(r.pids, pid)
	return x
}

// toldAbove is of how many processes it is told that they run untraced. Of the others
// the end tells how many they were.
const toldAbove = 10

// tooMany says whether no more processes can be traced now, and tells it. Sessions whose
// processes have ended are waited for.
func (r *recording) tooMany(pid int) bool {
	f := r.following
	for x := f.ending(); x != nil; x = f.ending() {
		<-x.over
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sessions) < f.most {
		return false
	}
	if !f.above[pid] && len(f.above) < toldAbove {
		r.status.print("process %d and who comes from it run untraced: %d processes are traced already, see --max-processes", pid, len(f.sessions))
	}
	f.above[pid] = true
	return true
}

// became looks whether the session of a process goes on, or begins another one, when it
// has become another program.
func (r *recording) became(e family.Event, begin func(x *session) error) {
	f := r.following
	old := f.of(e.PID)
	x := r.descendant(e.PID)
	var err error
	x.made, err = tracer.NewPlan(r.optionsOf(x))
	switch {
	case err == nil && old != nil && !e.Thread && old.tracer.Plan().Covers(x.made):
		_ = x.made.Close() // it was only compared
		x.system.Close()
		f.Go(e.PID)
		return
	case !e.Last && (errors.Is(err, tracer.ErrNoAllocator) || errors.Is(err, tracer.ErrStripped)):
		x.system.Close()
		f.Next(e.PID)
		return
	}
	defer f.Go(e.PID)
	if old != nil {
		old.replaced.Store(true)
		old.stop()
	}
	switch {
	case err != nil:
		x.system.Close()
		err = x.explain(err)
		if old != nil {
			<-old.over // what there is of it might do harm now
		}
	case old == nil && r.tooMany(e.PID):
		x.system.Close()
		_ = x.made.Close() // nothing was done with it
	default:
		err = begin(x)
	}
	if err != nil {
		r.refused(err)
	}
}

// refused tells that a process that is followed is not traced, unless it has ended.
func (r *recording) refused(err error) {
	if errors.Is(err, tracer.ErrNoProcess) || errors.Is(err, tracer.ErrZombie) {
		return // it was killed while it was held
	}
	f := r.following
	f.mu.Lock()
	f.untraced++
	f.mu.Unlock()
	r.status.print("not traced: %v", err)
}

// announce says that a session has begun.
func (r *recording) announce(x *session) {
	switch {
	case r.config.quiet, x.child && r.config.verbose == 0: // its end tells of it
	default:
		r.status.print("tracing process %d (%s), writing %s", x.pid, printable.Name(x.tracer.Plan().ProcessName()), x.out.Path())
	}
}

// childSummary is the line about a process that was followed.
func (x *session) childSummary() string {
	s := &x.stats
	text := fmt.Sprintf("process %d (%s): %s", x.pid, printable.Name(x.tracer.Plan().ProcessName()), callCounts(s))
	if x.out.Regular() {
		text += " in " + x.out.Path()
	}
	var more []string
	if s.Losses() > s.Lost[tracer.LossPaused] {
		more = append(more, fmt.Sprintf("lost: %d%s", s.LostEvents(), losses(s)))
	}
	if s.Lost[tracer.LossPaused] > 0 {
		more = append(more, pauses(s))
	}
	if s.MissesPrograms() {
		more = append(more, "it became a program that is not traced")
	}
	if len(more) > 0 {
		text += "; " + strings.Join(more, "; ")
	}
	return text
}
