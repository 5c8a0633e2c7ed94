package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/record"
)

// Recording records processes in one window after the other. Several processes are recorded
// at the same time.
type Recording struct {
	options   Options
	held      Held // nil when the process runs
	exits     *exits
	following *following // nil if children are not followed
	windows   int        // so far
	untraced  int        // processes that could not be traced, the most of all windows

	busy   atomic.Int64 // sessions whose processes wait for them
	naming sync.Mutex   // held by the session that looks up names at its end

	mu    sync.Mutex   // of what follows
	count int          // sessions that have ended
	sum   record.Stats // of these
	ends  []end        // of those that failed, or miss something besides what their stats count
}

// end is how a session has ended.
type end struct {
	missing []string // besides what stats count
	err     error
}

// add adds what is missing; empty for nothing.
func (e *end) add(missing string) {
	if missing != "" {
		e.missing = append(e.missing, missing)
	}
}

// New returns a recording that has not begun.
func New(o Options) *Recording { return &Recording{options: o, held: o.Held} }

// Run records until the last session has ended, or ctx ends. It answers requests until
// then. The errors are those that concern the recording; those of sessions are in Result.
func (r *Recording) Run(ctx context.Context, requests <-chan Request) error {
	until, stop := context.WithCancel(ctx)
	defer stop()
	exits, err := watchExits(r.options.PIDs)
	if err != nil {
		return errors.Join(err, r.letGo(false))
	}
	r.exits = exits
	defer func() { _ = exits.Close() }() // nothing was written to it
	err = r.follow()
	if r.following != nil {
		// No process is to wait for files to be completed.
		defer context.AfterFunc(until, r.following.Close)()
		defer r.following.Close()
	}
	if err != nil {
		return errors.Join(err, r.letGo(false))
	}
	l := &loop{Recording: r, ctx: ctx, until: until, stop: stop}
	return l.run(requests)
}

// letGo lets a held process run, or gives it up: it has done nothing yet.
func (r *Recording) letGo(runs bool) error {
	held := r.held
	r.held = nil
	switch {
	case held == nil:
		return nil
	case runs && r.following != nil:
		return r.following.take(held)
	case runs:
		return held.Release()
	}
	return held.GiveUp()
}

// several reports whether there may be more than one session at a time.
func (r *Recording) several() bool { return len(r.options.PIDs) > 1 || r.following != nil }

// beginSessions begins the sessions of a window: one for each process that is still there.
// An error is one that keeps all processes from being traced.
func (r *Recording) beginSessions(w *window) error {
	r.options.Line.Begin()
	untraced, tried := 0, 0
	for i, pid := range r.processes() {
		if w.until.Err() != nil {
			return nil
		}
		if r.windows > 1 && r.exits.gone(pid) { // the first window reports such a process
			continue
		}
		if i >= len(r.options.PIDs) {
			if x := r.descendant(pid); !r.tooMany(pid) {
				if err := w.trace(x); err != nil {
					r.refused(err)
				}
			}
			continue
		}
		tried++
		x := r.newSession(pid)
		x.held = r.held
		if err := w.trace(x); err != nil {
			if len(r.options.PIDs) == 1 || concernsAll(err) {
				return err
			}
			untraced++
			r.untraced = max(r.untraced, untraced)
			r.options.Report.Refused(err)
			continue
		}
		w.first = append(w.first, x)
	}
	switch {
	case tried == 0:
		return errors.New("all processes have ended")
	case untraced == tried:
		return fmt.Errorf("none of the %d processes can be traced", tried)
	}
	return nil
}

// processes returns the processes of a new window: those of the options, and their
// descendants.
func (r *Recording) processes() []int {
	if r.following == nil {
		return r.options.PIDs
	}
	all := slices.Clone(r.options.PIDs)
	for _, pid := range r.following.PIDs() {
		if !slices.Contains(all, pid) {
			all = append(all, pid)
		}
	}
	return all
}

// tracerOptions returns the options of a session's tracer.
func (r *Recording) tracerOptions(x *session) plan.Options {
	o := r.options.Tracer
	o.PID, o.Tick = x.pid, x.tick
	switch {
	case x.child:
		o.Shares = 2 * r.options.Follow.Most
	case r.following != nil:
		o.Shares = 2 * len(r.options.PIDs)
	}
	if r.options.Unbuffered {
		o.Idle = x.flush
	}
	o.Activity.Record = x.chain.translator.Activity
	o.Functions.Record = x.chain.translator.Function
	line := r.options.Line
	o.Warn = line.Print
	if r.several() {
		o.Warn = func(format string, args ...any) {
			line.Print("process %d: %s", x.pid, fmt.Sprintf(format, args...))
		}
	}
	if line.Verbose > 0 {
		o.Log = o.Warn
	}
	return o
}

// relaxed is called when a process no longer waits for its session. If none waits, the
// tracers are not urgent any more.
func (r *Recording) relaxed() {
	if r.busy.Add(-1) == 0 && r.options.Names {
		_ = host.Unprioritize() // a priority that was not raised cannot be lowered
	}
}

// end takes the end of a session. With several, it reports a failure at once. Losses under
// Strict end all sessions, and so does the end of a keeper where processes are followed.
func (r *Recording) end(x *session, err error, stop func()) {
	defer close(x.over)
	if r.following != nil {
		r.following.remove(x)
	}
	if err != nil && r.several() && !errors.Is(err, ErrHurried) && !errors.Is(err, errRemovalHurried) {
		r.options.Report.Failed(x.pid, err)
		err = errors.Join(cli.ErrReported, err)
	}
	// Without its keeper a process that is followed runs on, and so do its children.
	if errors.Is(err, ErrLost) || r.following != nil && errors.Is(err, keeper.ErrEnded) {
		stop()
	}
	if !errors.Is(err, ErrHurried) {
		x.root.Close() // after a hurried end, the other end of the session may be using it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	r.sum.Add(&x.stats)
	e := end{err: err}
	if x.chain.events != nil {
		e.add(x.chain.events.Missing())
	}
	if x.extras.snapshots != nil {
		e.add(x.extras.snapshots.Missing())
	}
	if e.err != nil || len(e.missing) > 0 {
		r.ends = append(r.ends, e)
	}
}

// outputError is an error of what the recording writes, which concerns all sessions.
type outputError struct{ error }

// Unwrap returns the cause.
func (e *outputError) Unwrap() error { return e.error }

// concernsAll reports whether an error concerns more than one process.
func concernsAll(err error) bool {
	_, output := errors.AsType[*outputError](err)
	return output || errors.Is(err, host.ErrContainer) || errors.Is(err, host.ErrLockedDown) || errors.Is(err, host.ErrNotPrivileged)
}

// DryRun prints to out what would be probed.
func (r *Recording) DryRun(out io.Writer) error {
	pids := r.options.PIDs
	for _, pid := range pids {
		x := &session{of: r, target: target{pid: pid, held: r.held}}
		plan, err := x.plan(r.tracerOptions(x))
		if err != nil && (len(pids) == 1 || concernsAll(err)) {
			return err
		}
		if err != nil {
			r.untraced++
			r.options.Report.Refused(err)
			continue
		}
		if len(pids) > 1 {
			fmt.Fprintf(out, "process %d\n", pid)
		}
		if err := errors.Join(plan.WriteText(printable.NewWriter(out)), plan.Close()); err != nil {
			return err
		}
	}
	if r.untraced == len(pids) {
		return fmt.Errorf("none of the %d processes can be traced", r.untraced)
	}
	return nil
}
