package recording

import (
	"errors"
	"fmt"
	"io"
	"time"

	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
)

// Errors that end recordings.
var (
	// ErrLost ends a recording that has lost events under Strict.
	ErrLost = errors.New("events were lost, and the trace ends at the first loss")
	// ErrHurried is the end by a second signal.
	ErrHurried = errors.New("ended at once by a second signal: what was not yet read from the buffers is missing")
)

// giveUp is how long a stream that nobody reads may block the end that a second signal
// asks for.
const giveUp = time.Second

// copy writes the records up to the end of the trace, or until it is to end at once.
func (x *session) copy() error {
	done := make(chan error, 1)
	go func() { done <- x.pump() }()
	o := &x.of.options
	select {
	case err := <-done:
		return err
	case <-o.Hurry:
	}
	if !x.out.Regular() {
		time.AfterFunc(giveUp, o.Exit)
	}
	// From now on pump waits for the lock, or for the tracer, and nobody waits for pump,
	// unless it has only to return: a trace that has its end misses nothing.
	x.mu.Lock()
	if x.ended {
		x.mu.Unlock()
		return <-done
	}
	return ErrHurried
}

// pump writes the records up to the end of the trace.
func (x *session) pump() error {
	var rec trace.Record
	for {
		err := x.probes.tracer.ReadRecord(&rec)
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
			x.probes.tracer.Stop()
			return err
		}
		if x.out.Full() {
			x.probes.tracer.Stop()
			return x.endEarly(&rec)
		}
		if rec.Kind == trace.KindLost && x.of.options.Strict {
			x.probes.tracer.Stop()
			return fmt.Errorf("%d × %s: %w", rec.Lost.Count, printable.Name(rec.Lost.Reason), ErrLost)
		}
	}
}

// endEarly ends a trace that is as large as allowed, after its last record.
func (x *session) endEarly(last *trace.Record) error {
	x.of.options.Report.Full(x.pid)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.write(&trace.Record{Kind: trace.KindEnd, Time: last.Time, PID: int32(x.pid)})
}

// write writes a record of the tracer, with what is known of the process's memory before
// and after it.
func (x *session) write(rec *trace.Record) error {
	e := &x.extras
	if rec.Kind == trace.KindCall {
		if e.heap != nil {
			e.heap.Observe(rec)
		}
		return x.put(rec)
	}
	err := errors.Join(x.beforeEnd(rec, x.put), e.resident.Before(rec, x.put))
	if e.heap != nil {
		err = errors.Join(err, e.heap.Before(rec, x.out.Side(), x.put))
	}
	if e.pages != nil {
		err = errors.Join(err, e.pages.Before(rec, x.put))
	}
	if err != nil {
		return err
	}
	if err := x.put(rec); err != nil {
		return err
	}
	return e.resident.After(rec, x.put)
}

// put writes a record as it is.
func (x *session) put(rec *trace.Record) error {
	if rec.Kind != trace.KindCall {
		x.frames.Observe(rec)
		x.extras.resident.Observe(rec)
	}
	x.endTime = max(x.endTime, rec.Time)
	x.ended = x.ended || rec.Kind == trace.KindEnd
	if s := x.extras.snapshots; s != nil {
		s.Observe(rec)
	}
	if x.estimates != nil {
		x.estimates.Record(rec)
	}
	x.sums.add(rec)
	return x.chain.write(rec)
}

// flush writes what is in memory.
func (x *session) flush() {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.chain.first.Flush() // an error shows again at the next write
}

// tick is called about once a second while recording.
func (x *session) tick() {
	x.mu.Lock()
	x.extras.resident.Read()
	if x.extras.heap != nil {
		x.extras.heap.Tick()
	}
	// Errors show again at the next write, and are handled there.
	if x.chain.machine != nil {
		_ = x.chain.machine.Tick()
	}
	_ = x.chain.first.Flush()
	if s := x.extras.snapshots; s != nil {
		s.Tick()
	}
	x.sums.tick()
	x.mu.Unlock()
	stats := x.probes.tracer.Stats()
	x.watch(&stats, false)
	x.measured(&stats, false)
	x.of.options.Line.Show(x.pid, status.Figures{
		Calls: stats.Calls, Lost: stats.LostEvents(), Pauses: stats.Lost[order.LossPaused],
		Blocks: stats.LiveBlocks, Unknown: stats.UnknownBlocks, Bytes: stats.LiveBytes,
	})
}
