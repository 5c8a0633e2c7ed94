package main

import (
	"context"
	"errors"
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

// session is the recording of one process: a tracer, what it is written to, and
// what is said about it.
type session struct {
	config    *config
	streams   cli.Streams
	pid       int
	tracer    *tracer.Tracer
	out       *outfile.File
	encoder   trace.Writer
	sink      trace.Writer // what records are written to: the encoder, or what leads there
	spooled   *spooled     // sink, if it keeps the records until the end; else nil
	side      *sidefile.Writer
	functions *functions // for the encoder; nil if it wants none
	system    *system
	names     *names
	status    *status
	hurry     <-chan struct{} // closed when the recording is to end at once
	relaxed   func()          // called when the process no longer waits for this session
	naming    *sync.Mutex     // held while names are looked up at the end: that takes memory
	alone     bool            // there is no other session

	mu sync.Mutex // of sink

	stopping sync.Mutex // of detached
	detached bool       // the tracer is closed

	pace  pace
	stats tracer.Stats // at the end of run
}

// outputError is about what the recording writes, and so about each session.
type outputError struct{ error }

// Unwrap returns the error as it was.
func (e *outputError) Unwrap() error { return e.error }

// attach opens the output and starts recording as options say. After an error
// nothing is left.
func (x *session) attach(options tracer.Options) error {
	plan, err := tracer.NewPlan(options)
	if err != nil {
		return explain(err, x.pid)
	}
	if x.config.verbose > 1 {
		err = x.status.write(plan.WriteText)
	}
	if err == nil {
		err = x.open()
	}
	if err != nil {
		return errors.Join(&outputError{err}, plan.Close())
	}
	if x.tracer, err = tracer.Open(plan); err != nil {
		return errors.Join(explain(err, x.pid), x.discard())
	}
	x.pace.at = time.Now()
	return nil
}

// run copies the trace to its output until its end, that of ctx or that of
// recording, which ends when ctx does, too. It returns what went wrong.
func (x *session) run(ctx, recording context.Context) error {
	defer context.AfterFunc(recording, x.stop)()
	err := x.copy()
	x.status.clear()
	if errors.Is(err, errHurried) {
		return errors.Join(err, x.finish()) // the kernel removes the probes
	}
	x.relaxed()
	// The probes are off from here on. The files come before the links, but not
	// when they take long: a call of the process costs something until then.
	slow := x.spooled != nil || x.functions != nil
	if slow {
		err = errors.Join(err, x.detach())
	}
	if ctx.Err() == nil { // that the recording has ended was no signal's doing
		if x.spooled != nil {
			x.spooled.hurry = ctx.Done()
		}
		if x.functions != nil {
			x.functions.hurry = ctx.Done()
		}
	}
	err = errors.Join(err, x.finish())
	x.stats = x.tracer.Stats()
	if !x.config.quiet {
		err = errors.Join(err, x.status.write(x.summary))
	}
	if !slow {
		err = errors.Join(err, x.detach())
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
		if x.isFull() {
			x.tracer.Stop()
			return x.endEarly(&rec)
		}
		if rec.Kind == trace.KindLost && x.config.strict {
			x.tracer.Stop()
			return lostUnderStrict(rec.Lost.Count, rec.Lost.Reason)
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
	x.watch(&stats)
	x.status.show(x.pid, &stats)
}
