package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer"
)

// recording is what one run of the command records: a session for each process,
// side by side.
type recording struct {
	config  *config
	streams cli.Streams
	options tracer.Options // of each tracer, but for the process
	status  status
	hurry   <-chan struct{} // closed when the recording is to end at once

	pids     []int
	untraced int          // processes that could not be traced
	busy     atomic.Int64 // sessions whose processes wait for them
	naming   sync.Mutex   // held by the session that looks up names at its end

	mu   sync.Mutex // of ends
	ends []end
}

// end is how the session of a process ended.
type end struct {
	stats tracer.Stats
	err   error
}

// record does what the command line asks for.
func record(ctx context.Context, s cli.Streams, c *config, hurry <-chan struct{}) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	pids, err := c.selection.Find()
	if err != nil {
		return err
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
	if err := r.options.CheckShares(); err != nil {
		return cli.WithHint(err, "select fewer, or say with --ring-size how large the buffers shall be")
	}
	return r.run(ctx)
}

// run records until the last session has ended.
func (r *recording) run(ctx context.Context) error {
	recording, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	err := r.start(ctx, recording, stop, &running)
	if err == nil {
		if d := r.config.duration; d > 0 {
			defer time.AfterFunc(d, stop).Stop()
		}
		err = r.ready()
	}
	if err != nil {
		stop()
	}
	running.Wait()
	return errors.Join(err, r.outcome())
}

// start begins a session for each process. Each runs from then on, since its
// process does. What would keep all from being traced is an error.
func (r *recording) start(ctx, recording context.Context, stop func(), running *sync.WaitGroup) error {
	r.status.begin()
	for _, pid := range r.pids {
		if recording.Err() != nil {
			return nil
		}
		if r.config.dotnet.perfMap {
			if err := enablePerfMap(recording, pid); err != nil {
				r.status.print("process %d: no perf map: %v", pid, err)
			}
		}
		x := r.newSession(pid)
		if err := x.attach(r.optionsOf(x)); err != nil {
			x.system.Close()
			if len(r.pids) == 1 || concernsAll(err) {
				return err
			}
			r.untraced++
			r.status.print("not traced: %v", err)
			continue
		}
		if !r.config.quiet {
			r.status.print("tracing process %d (%s), writing %s", pid, printable.Name(x.tracer.Plan().ProcessName()), x.out.Path())
		}
		r.busy.Add(1)
		running.Go(func() { r.end(x, x.run(ctx, recording), stop) })
	}
	if r.untraced == len(r.pids) {
		return fmt.Errorf("none of the %d processes can be traced", r.untraced)
	}
	return nil
}

// newSession makes a session that nothing is opened for yet.
func (r *recording) newSession(pid int) *session {
	x := &session{
		config: r.config, streams: r.streams, pid: pid, system: openSystem(pid), status: &r.status, hurry: r.hurry,
		relaxed: r.relaxed, naming: &r.naming, alone: len(r.pids) == 1,
	}
	x.names = newNames(pid, x.system)
	return x
}

// optionsOf returns the options of a session's tracer.
func (r *recording) optionsOf(x *session) tracer.Options {
	o := r.options
	o.PID, o.Tick = x.pid, x.tick
	say := r.status.print
	if len(r.pids) > 1 {
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

// ready tells whoever waits that the probes are in.
func (r *recording) ready() error {
	if r.config.readyFile == "" {
		return nil
	}
	f, err := outfile.Create(r.config.readyFile)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return cli.FileError("create ready file", r.config.readyFile, err)
	}
	return nil
}

// end notes how a session has ended. With several, a failure is told at once.
// Losses under --strict end them all.
func (r *recording) end(x *session, err error, stop func()) {
	if err != nil && len(r.pids) > 1 && !errors.Is(err, errHurried) {
		r.status.print("process %d: %v", x.pid, err)
		err = errors.Join(cli.ErrReported, err)
	}
	if errors.Is(err, errStrict) {
		stop()
	}
	if !errors.Is(err, errHurried) {
		x.system.Close() // else the other end of the session may be using it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, end{x.stats, err})
}

// dryRun prints what would be probed.
func (r *recording) dryRun() error {
	for _, pid := range r.pids {
		x := &session{config: r.config, pid: pid, status: &r.status}
		plan, err := tracer.NewPlan(r.optionsOf(x))
		if err != nil && (len(r.pids) == 1 || concernsAll(err)) {
			return explain(err, pid)
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
