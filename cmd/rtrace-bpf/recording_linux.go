package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/selection"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer"
	"rtrace-bpf/tracer/keeper"
)

// recording is what one run of the command records: a session for each process,
// side by side.
type recording struct {
	config  *config
	streams cli.Streams
	options tracer.Options // of each tracer, but for the process
	status  status
	hurry   <-chan struct{} // closed when the recording is to end at once
	held    heldProcess     // the process, until the probes are in; nil for none, or behind that
	waiting func(bool)      // of each session

	pids      []int
	lives     *lives
	told      bool         // the ready file was created
	following *following   // nil without --follow-forks
	windows   int          // in which tracing was on, so far
	untraced  int          // processes that could not be traced, the most of all windows
	busy      atomic.Int64 // sessions whose processes wait for them
	naming    sync.Mutex   // held by the session that looks up names at its end

	mu    sync.Mutex   // of what follows
	count int          // sessions that have ended
	sum   tracer.Stats // of these
	ends  []end        // of those of which there is more to tell
}

// end is how the session of a process ended, beside its stats.
type end struct {
	missing string // besides what stats tell; empty for nothing
	err     error
}

// recordAll does what the command line asks for.
func recordAll(ctx context.Context, s cli.Streams, c *config, hurry <-chan struct{}) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	pids, err := c.selection.Find()
	if errors.Is(err, selection.ErrNone) && len(c.selection.Comms) == 1 {
		return cli.WithHint(err, "to trace the next one that starts: "+name+" --wait --comm "+cli.Word(c.selection.Comms[0]))
	}
	if err != nil {
		return err
	}
	if c.dotnet.native {
		if err := oneOfDotnet(pids); err != nil {
			return err
		}
	}
	r := &recording{
		config: c, streams: s, options: options, hurry: hurry, pids: pids,
		status: status{w: s.Err, on: s.ErrTerminal && !c.quiet},
	}
	r.options.Shares = len(pids)
	if c.dryRun {
		return r.dryRun()
	}
	if err := r.checkOutput(); err != nil {
		return err
	}
	if err := checkShares(&r.options, r.options.Shares, "select fewer"); err != nil {
		return err
	}
	if err := c.follow.share(&r.options, len(pids)); err != nil {
		return err
	}
	return r.run(ctx)
}

// run records until the last session has ended.
func (r *recording) run(ctx context.Context) error {
	recording, stop := context.WithCancel(ctx)
	defer stop()
	lives, err := watchLives(r.pids)
	if err != nil {
		return errors.Join(err, r.letGo(false))
	}
	r.lives = lives
	defer func() { _ = lives.Close() }() // nothing was written to it
	err = r.follow()
	if r.following != nil {
		// No process is to wait for files to be completed.
		defer context.AfterFunc(recording, r.following.Close)()
		defer r.following.Close()
	}
	if err != nil {
		return errors.Join(err, r.letGo(false))
	}
	c, err := newController(r)
	if err != nil {
		return errors.Join(err, r.letGo(false))
	}
	defer func() { _ = c.Close() }() // nobody is left to be told
	return errors.Join(c.run(ctx, recording, stop), r.outcome())
}

// letGo lets a process run that is held, or gives it up: it has done nothing yet.
func (r *recording) letGo(runs bool) error {
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

// start begins a session for each process that is still there. Each runs from then on,
// since its process does. What would keep all from being traced is an error.
func (r *recording) start(ctx, recording context.Context, stop func(), running *sync.WaitGroup) (started []*session, err error) {
	r.status.begin()
	untraced, tried := 0, 0
	begun := r.begun()
	for i, pid := range begun {
		if recording.Err() != nil {
			return started, nil
		}
		if r.windows > 1 && r.lives.gone(pid) { // of a first one that has, it is said what is there
			continue
		}
		if i >= len(r.pids) {
			if x := r.descendant(pid); !r.tooMany(pid) {
				if err := r.trace(ctx, recording, x, stop, running); err != nil {
					r.refused(err)
				}
			}
			continue
		}
		tried++
		x := r.newSession(pid)
		x.held = r.held
		if err := r.trace(ctx, recording, x, stop, running); err != nil {
			if len(r.pids) == 1 || concernsAll(err) {
				return started, err
			}
			untraced++
			r.untraced = max(r.untraced, untraced)
			r.status.print("not traced: %v", err)
			continue
		}
		started = append(started, x)
	}
	switch {
	case tried == 0:
		return nil, errors.New("all processes have ended")
	case untraced == tried:
		return started, fmt.Errorf("none of the %d processes can be traced", tried)
	}
	return started, nil
}

// trace begins a session, which runs until its process ends or recording. After an
// error there is none.
func (r *recording) trace(ctx, recording context.Context, x *session, stop func(), running *sync.WaitGroup) (err error) {
	if r.config.dotnet.perfMap {
		if x.compiled, err = newCompiled(recording, x.pid, &r.status); err != nil {
			r.status.print("process %d: no perf map: %v", x.pid, err)
		}
	}
	if err := x.attach(recording, r.optionsOf(x)); err != nil {
		x.system.Close()
		if x.compiled != nil {
			x.compiled.discard()
		}
		return err
	}
	r.announce(x)
	r.busy.Add(1)
	if r.following != nil {
		r.following.add(x)
	}
	running.Go(func() { r.end(x, x.run(ctx, recording), stop) })
	return nil
}

// several says whether there may be more than one session at a time.
func (r *recording) several() bool { return len(r.pids) > 1 || r.following != nil }

// newSession makes a session that nothing is opened for yet.
func (r *recording) newSession(pid int) *session {
	x := &session{
		config: r.config, streams: r.streams, pid: pid, system: openSystem(pid), status: &r.status, hurry: r.hurry,
		relaxed: r.relaxed, waiting: r.waiting, naming: &r.naming, alone: !r.several(), over: make(chan struct{}),
	}
	x.names = newNames(pid, x.system)
	return x
}

// optionsOf returns the options of a session's tracer.
func (r *recording) optionsOf(x *session) tracer.Options {
	o := r.options
	o.PID, o.Tick = x.pid, x.tick
	switch {
	case x.child:
		o.Shares = 2 * r.config.follow.most
	case r.following != nil:
		o.Shares = 2 * len(r.pids)
	}
	if r.config.unbuffered {
		o.Idle = x.flush
	}
	o.Activity.Record = x.messages.record
	o.Functions.Record = x.messages.called
	say := r.status.print
	if r.several() {
		say = func(format string, args ...any) {
			r.status.print("process %d: %s", x.pid, fmt.Sprintf(format, args...))
		}
	}
	o.Warn = say
	if r.config.verbose > 0 {
		o.Log = say
	}
	return o
}

// relaxed notes that a process no longer waits for its session. What the tracer
// does when none waits any more is not urgent.
func (r *recording) relaxed() {
	if r.busy.Add(-1) == 0 && r.config.names() {
		_ = tracer.Unprioritize() // what was not raised cannot be lowered
	}
}

// ready tells whoever waits that the probes are in, or that a process is waited for. It
// does so once. ctx ends waiting for a reader, if the ready file is a FIFO.
func (r *recording) ready(ctx context.Context) error {
	if r.config.readyFile == "" || r.told {
		return nil
	}
	r.told = true
	f, err := outfile.Create(ctx, r.config.readyFile, nil)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return cli.FileError("create ready file", r.config.readyFile, err)
	}
	return nil
}

// end notes how a session has ended. With several, a failure is told at once.
// Losses under --strict end them all, and so does the end of a keeper where processes are
// followed.
func (r *recording) end(x *session, err error, stop func()) {
	defer close(x.over)
	if r.following != nil {
		r.following.remove(x)
	}
	if err != nil && r.several() && !errors.Is(err, errHurried) && !errors.Is(err, errRemovalHurried) {
		r.status.print("process %d: %v", x.pid, err)
		err = errors.Join(cli.ErrReported, err)
	}
	// Without its keeper a process that is followed runs on, and its children, too.
	if errors.Is(err, errStrict) || r.following != nil && errors.Is(err, keeper.ErrEnded) {
		stop()
	}
	if !errors.Is(err, errHurried) {
		x.system.Close() // else the other end of the session may be using it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	r.sum.Add(&x.stats)
	e := end{err: err}
	if x.managed != nil {
		e.missing = x.managed.missing()
	}
	if e.err != nil || e.missing != "" {
		r.ends = append(r.ends, e)
	}
}

// dryRun prints what would be probed.
func (r *recording) dryRun() error {
	for _, pid := range r.pids {
		x := &session{config: r.config, held: r.held, pid: pid, status: &r.status}
		plan, err := x.plan(r.optionsOf(x))
		if err != nil && (len(r.pids) == 1 || concernsAll(err)) {
			return x.explain(err)
		}
		if err != nil {
			r.untraced++
			r.status.print("not traced: %v", err)
			continue
		}
		if len(r.pids) > 1 {
			fmt.Fprintf(r.streams.Out, "process %d\n", pid)
		}
		if err := errors.Join(plan.WriteText(printable.NewWriter(r.streams.Out)), plan.Close()); err != nil {
			return err
		}
	}
	if r.untraced == len(r.pids) {
		return fmt.Errorf("none of the %d processes can be traced", r.untraced)
	}
	return r.outcome()
}
