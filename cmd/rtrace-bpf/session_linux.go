package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/pageflags"
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
	held      heldProcess // the process, if it is held; nil: it runs
	pid       int
	tracer    *tracer.Tracer
	out       *outfile.File
	postproc  *postprocessor // what the trace goes through to out; nil for nothing
	encoder   trace.Writer
	sink      trace.Writer // what records are written to: the encoder, or what leads there
	spooled   *spooled     // sink, if it keeps the records until the end; else nil
	side      *sidefile.Writer
	managed   *beside            // the events of the runtime; nil for none
	compiled  *compiled          // names what the runtime compiles; nil for nothing
	functions *functions         // for the encoder; nil if it wants none
	messages  messages           // of what the process does beside allocations
	scene     *scene             // adds files and the machine to what the tracer tells; nil for nothing
	leaks     *outfile.File      // the report of --swap-lsan; nil for none
	pages     *pageflags.Process // looks at the pages at the end of the trace; nil: nobody asks
	resident  *resident          // follows how much memory is resident; nil: nobody asks
	heap      *heapInfo          // looks at the heap for the end of the trace; nil: nobody asks
	endTime   int64              // time of the last record
	system    *system
	names     *names
	status    *status

	attached    []*outfile.File    // copies of files that go with the trace
	attachments []trace.Attachment // their names

	hurry   <-chan struct{} // closed when the recording is to end at once
	relaxed func()          // called when the process no longer waits for this session
	naming  *sync.Mutex     // held while names are looked up at the end: that takes memory
	waiting func(bool)      // called when waiting for a reader of the trace begins and ends; may be nil
	alone   bool            // there is no other session

	child    bool          // its process was made by one that is followed
	made     *tracer.Plan  // what is to be probed; nil if that is still to be found out
	replaced atomic.Bool   // another session goes on with its process, which has become another program
	over     chan struct{} // closed at its end

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
func (x *session) attach(ctx context.Context, options tracer.Options) error {
	plan, err := x.plan(options)
	if err != nil {
		return x.explain(err)
	}
	if x.config.verbose > 1 {
		err = x.status.write(plan.WriteText)
	}
	if err == nil {
		if err := x.openScene(); err != nil {
			return errors.Join(err, plan.Close())
		}
		err = x.open(ctx)
	}
	if err != nil {
		x.scene.stop()
		return errors.Join(&outputError{err}, plan.Close())
	}
	x.openResident()
	if x.tracer, err = tracer.Open(plan); err != nil {
		x.resident.close()
		x.scene.stop()
		return errors.Join(x.explain(err), x.discard())
	}
	x.openHeapInfo()
	if x.managed != nil { // from here on, so that nothing of it is older than the trace
		if err := x.managed.begin(ctx); err != nil {
			return errors.Join(err, x.tracer.Close(), x.discard())
		}
	}
	x.pace.look(reading{cpu: x.resident.cpu()}, time.Now(), tracer.Costs{})
	return nil
}

// run copies the trace to its output until its end, that of ctx or that of
// recording, which ends when ctx does, too. It returns what went wrong.
func (x *session) run(ctx, recording context.Context) error {
	defer context.AfterFunc(recording, x.stop)()
	err := x.copy()
	x.scene.stop()
	x.status.clear()
	if errors.Is(err, errHurried) {
		if x.managed != nil {
			err = errors.Join(err, x.managed.abandon())
		}
		return errors.Join(err, x.dropLeaks(), x.finish()) // the kernel removes the probes
	}
	stats := x.tracer.Stats()
	x.watch(&stats, true)
	x.relaxed()
	// The probes are off from here on. The files come before the links, but not
	// when they take long: a call of the process costs something until then.
	slow := x.spooled != nil || x.functions != nil || x.leaks != nil
	if slow {
		err = errors.Join(err, x.detach())
	}
	hurry := x.hurry
	if ctx.Err() == nil { // that the recording has ended was no signal's doing
		hurry = ctx.Done()
	}
	if x.spooled != nil && x.managed == nil {
		x.spooled.hurry = hurry
	}
	if x.functions != nil {
		x.functions.hurry = hurry
	}
	if x.managed != nil {
		err = errors.Join(err, x.managed.end(hurry))
	}
	if err == nil {
		err = x.reportLeaks()
	} else {
		err = errors.Join(err, x.dropLeaks())
	}
	err = errors.Join(err, x.finish())
	x.stats = x.tracer.Stats()
	if x.replaced.Load() {
		x.stats.Unprobed, x.stats.WasUnprobed, x.stats.LeftBehind = false, false, false
	}
	switch {
	case x.config.quiet:
	case x.child:
		x.status.print("%s", x.childSummary())
	default:
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
	end := x.tracer.Close
	if x.alone {
		end = x.tracer.Leave
	}
	err := x.await(end)
	x.status.clear()
	return err
}

// removalLimit is how long the probes may take to be removed. It takes tens of seconds
// where each is a perf event and the machine is busy.
const removalLimit = 2 * time.Minute

// The probes have not been removed yet when rtrace-bpf ends.
var (
	errRemovalHurried = errors.New("ended at once by a second signal, before the probes were removed: rtrace-keeper goes on with that")
	errRemovalLate    = fmt.Errorf("rtrace-keeper has not removed the probes within %v: it goes on with that, see that it runs", removalLimit)
)

// await waits for the probes to be removed, but not after a second signal, nor for ever:
// the files do not depend on it.
func (x *session) await(end func() error) error {
	done := make(chan error, 1)
	go func() { done <- end() }()
	limit := time.NewTimer(removalLimit)
	defer limit.Stop()
	select {
	case err := <-done:
		return err
	case <-x.hurry:
		return errRemovalHurried
	case <-limit.C:
		return errRemovalLate
	}
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
	if rec.Kind == trace.KindCall {
		if x.heap != nil {
			x.heap.observe(rec)
		}
		return x.put(rec)
	}
	if err := errors.Join(x.residentBefore(rec), x.tellHeap(rec), x.tellPages(rec)); err != nil {
		return err
	}
	if err := x.put(rec); err != nil {
		return err
	}
	return x.residentAfter(rec)
}

// put writes a record as it is.
func (x *session) put(rec *trace.Record) error {
	if rec.Kind != trace.KindCall {
		x.names.observe(rec)
		if x.resident != nil {
			x.resident.account.Add(rec)
		}
	}
	x.endTime = max(x.endTime, rec.Time)
	if x.scene != nil {
		return x.scene.write(rec)
	}
	return x.sink.WriteRecord(rec)
}

// finish completes the files, after an error with what can still be written.
// It returns what has gone wrong since.
func (x *session) finish() error {
	err := x.sink.Close()
	if x.postproc != nil {
		err = errors.Join(err, x.postproc.Close())
	}
	err = errors.Join(err, x.closeAttached(), x.out.Close())
	x.heap.close()
	x.resident.close()
	x.closePages()
	if x.managed != nil {
		err = errors.Join(err, x.managed.file.Close())
	}
	return err
}

// flush hands on what was written, for --no-buffer.
func (x *session) flush() {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.sink.Flush() // an error shows again at the next write
}

// tick is called about once a second while recording.
func (x *session) tick() {
	x.mu.Lock()
	x.resident.read()
	if x.heap != nil {
		x.heap.tick()
	}
	// An error shows again, and is handled, at the next write.
	if x.scene != nil {
		_ = x.scene.tick()
	}
	_ = x.sink.Flush()
	x.mu.Unlock()
	stats := x.tracer.Stats()
	x.watch(&stats, false)
	x.status.show(x.pid, &stats)
}
