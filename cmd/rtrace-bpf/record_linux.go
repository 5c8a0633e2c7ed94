package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer"
)

// session is one recording: a tracer, what it is written to, and what is said
// about it.
type session struct {
	config  *config
	streams cli.Streams
	tracer  *tracer.Tracer
	out     *outfile.File
	encoder trace.Writer
	sink    trace.Writer // what records are written to: the encoder, or what leads there
	spooled *spooled     // sink, if it keeps the records until the end; else nil
	side    *sidefile.Writer
	system  *system
	names   *names
	status  status
	hurry   <-chan struct{} // closed when the recording is to end at once

	mu sync.Mutex // of sink

	stopping sync.Mutex // of detached
	detached bool       // the tracer is closed
}

// record does what the command line asks for.
func record(ctx context.Context, s cli.Streams, c *config, hurry <-chan struct{}) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	x := &session{
		config: c, streams: s, system: openSystem(c.pid), hurry: hurry,
		status: status{w: s.Err, on: s.ErrTerminal && !c.quiet},
	}
	x.names = newNames(c.pid, x.system)
	options.Tick = x.tick
	options.Warn = x.status.print
	if c.verbose > 0 {
		options.Log = x.status.print
	}
	plan, err := tracer.NewPlan(options)
	if err != nil {
		return explain(err, c)
	}
	if c.dryRun {
		return errors.Join(plan.WriteText(s.Out), plan.Close())
	}
	if c.verbose > 1 {
		err = plan.WriteText(s.Err)
	}
	if err == nil {
		err = x.open()
	}
	if err != nil {
		return errors.Join(err, plan.Close())
	}
	if x.tracer, err = tracer.Open(plan); err != nil {
		return errors.Join(explain(err, c), x.discard())
	}
	return x.run(ctx)
}

// run copies the trace to its output until its end.
func (x *session) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, x.stop)()
	if d := x.config.duration; d > 0 {
		defer time.AfterFunc(d, x.stop).Stop()
	}
	err := x.ready()
	x.status.begin()
	if err == nil {
		err = x.copy()
	}
	x.status.clear()
	if errors.Is(err, errHurried) {
		return errors.Join(err, x.finish()) // the kernel removes the probes
	}
	// The probes are off from here on. The files come before the links, but not
	// when they take long: a call of the process costs something until then.
	if x.spooled != nil {
		err = errors.Join(err, x.detach())
		if ctx.Err() == nil {
			x.spooled.hurry = ctx.Done() // that the recording has ended was no signal's doing
		}
	}
	err = errors.Join(err, x.finish())
	stats := x.tracer.Stats()
	if !x.config.quiet {
		x.summary(&stats)
	}
	if x.spooled == nil {
		err = errors.Join(err, x.detach())
	}
	if err == nil && stats.Losses() > 0 {
		return cli.Incompletef("%d events were lost (%s)", stats.LostEvents(), lossList(&stats))
	}
	if err == nil && stats.MissesPrograms() {
		return cli.Incompletef("the process became a program with another C library or none, which is not traced")
	}
	return err
}

// stop ends the recording, unless that has happened.
func (x *session) stop() {
	x.stopping.Lock()
	defer x.stopping.Unlock()
	if !x.detached {
		x.tracer.Stop()
	}
}

// detach removes the probes.
func (x *session) detach() error {
	x.stopping.Lock()
	x.detached = true
	x.stopping.Unlock()
	if x.tracer.Plan().Mechanism() == tracer.MechanismPerf {
		x.status.say("removing the probes, which takes seconds on this kernel")
	}
	err := x.tracer.Close()
	x.status.clear()
	return err
}

// ready tells whoever waits that the probes are in.
func (x *session) ready() error {
	plan := x.tracer.Plan()
	if !x.config.quiet {
		fmt.Fprintf(x.streams.Err, "%s: tracing process %d (%s), writing %s\n", name, x.config.pid, plan.ProcessName(), x.out.Path())
	}
	if x.config.readyFile == "" {
		return nil
	}
	if err := os.WriteFile(x.config.readyFile, nil, 0o644); err != nil {
		return fmt.Errorf("create ready file: %w", err)
	}
	return nil
}

// errStrict ends a trace that has lost events under --strict.
var errStrict = errors.New("events were lost, and --strict ends the trace then")

// errHurried is the end by a second signal.
var errHurried = errors.New("ended at once by a second signal: what was not yet read from the buffers is missing")

// giveUp is how long a stream that nobody reads may hold up the end that a
// second signal asked for.
const giveUp = time.Second

// copy writes the records up to the end of the trace, or until it is to end at
// once.
func (x *session) copy() error {
	done := make(chan error, 1)
	go func() { done <- x.pump() }()
	select {
	case err := <-done:
		return err
	case <-x.hurry:
	}
	if !x.out.Regular() {
		time.AfterFunc(giveUp, func() { os.Exit(int(cli.Failed)) })
	}
	// The pump waits for the lock from now on, or for the tracer, and nobody for it.
	x.mu.Lock()
	return errHurried
}

// pump writes the records up to the end of the trace.
func (x *session) pump() error {
	var rec trace.Record
	for {
		err := x.tracer.ReadRecord(&rec)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		x.mu.Lock()
		err = x.write(&rec)
		x.mu.Unlock()
		if err != nil {
			x.tracer.Stop()
			return err
		}
		if rec.Kind == trace.KindLost && x.config.strict {
			x.tracer.Stop()
			return fmt.Errorf("%d × %s: %w", rec.Lost.Count, rec.Lost.Reason, errStrict)
		}
	}
}

func (x *session) write(rec *trace.Record) error {
	if rec.Kind != trace.KindCall {
		x.names.observe(rec)
	}
	return x.sink.WriteRecord(rec)
}

// finish completes the files, after an error with what can still be written.
// It returns what has gone wrong since.
func (x *session) finish() error { return errors.Join(x.sink.Close(), x.out.Close()) }

// tick is called about once a second while recording.
func (x *session) tick() {
	x.mu.Lock()
	// An error shows again, and is handled, at the next write.
	_ = x.sink.Flush()
	x.mu.Unlock()
	stats := x.tracer.Stats()
	x.status.show(&stats)
}

// explain adds what the user can do about an error of the tracer.
func explain(err error, c *config) error {
	switch {
	case errors.Is(err, tracer.ErrContainer):
		return cli.WithHint(err, "run it as root of the machine, outside of the container")
	case errors.Is(err, tracer.ErrLockedDown):
		return cli.WithHint(err, "a kernel is locked down at boot: by lockdown= on its command line, or by Secure Boot")
	case errors.Is(err, tracer.ErrNotPrivileged):
		return cli.WithHint(err, "run it as root: sudo "+name+fmt.Sprintf(" -p %d", c.pid))
	case errors.Is(err, tracer.ErrEmulated):
		return cli.WithHint(err, "trace it on a machine of its own kind")
	case errors.Is(err, tracer.ErrNoAllocator):
		return cli.WithHint(err, "it must map a C library that exports malloc and free")
	}
	return err
}
