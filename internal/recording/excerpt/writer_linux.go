package excerpt

import (
	"context"
	"errors"
	"sync"

	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/trace"
)

// writer is the way of one process's records.
type writer struct {
	of  *Excerpts
	pid int
	to  trace.Writer

	mu    sync.Mutex // of what follows; Excerpts.mu is locked before it
	state state
	out   *part // nil while there is none
}

var _ trace.Writer = (*writer)(nil)

// part is a trace of a part of the recording. Times are those of the tracer's clock, in
// nanoseconds.
type part struct {
	trace    *output.Trace
	encoder  *output.Writer
	from, to int64         // times of its calls; to is 0 as long as it goes on
	last     int64         // time of its last record
	begun    bool          // it has a header
	ended    bool          // it has the record of its end
	done     chan struct{} // closed when its files are complete
}

// WriteRecord implements trace.Writer. An error of the excerpt ends that, and nothing else.
func (w *writer) WriteRecord(r *trace.Record) error {
	w.mu.Lock()
	failed := w.copy(r)
	w.mu.Unlock()
	failed()
	return w.to.WriteRecord(r)
}

// nothing is done after a record that was written.
func nothing() {}

// copy writes a record to the excerpt, if it belongs there. What it returns is called without the
// lock.
func (w *writer) copy(r *trace.Record) (after func()) {
	if r.Kind != trace.KindCall {
		w.state.observe(r)
	}
	p := w.out
	switch {
	case p == nil:
		return nothing
	case p.to != 0 && r.Time > p.to:
		return w.finish(nil)
	case r.Kind == trace.KindHeader && p.begun, r.Kind == trace.KindRSS, r.Kind == trace.KindCall && r.Time < p.from:
		return nothing
	}
	if err := p.write(r); err != nil {
		return w.finish(err)
	}
	return nothing
}

func (p *part) write(r *trace.Record) error {
	p.last = max(p.last, r.Time)
	p.begun = p.begun || r.Kind == trace.KindHeader
	p.ended = p.ended || r.Kind == trace.KindEnd
	return p.encoder.WriteRecord(r)
}

// patience is how late an event may come, in nanoseconds.
const patience = 1_000_000_000

// Flush implements trace.Writer. It is called about once a second, and ends an excerpt after which
// no record has come.
func (w *writer) Flush() error {
	w.mu.Lock()
	after, p := nothing, w.out
	switch {
	case p == nil:
	case p.to != 0 && now() > p.to+patience:
		after = w.finish(nil)
	default:
		if err := p.encoder.Flush(); err != nil {
			after = w.finish(err)
		}
	}
	w.mu.Unlock()
	after()
	return w.to.Flush()
}

// Close implements trace.Writer. It completes the excerpt.
func (w *writer) Close() error {
	w.of.remove(w)
	w.mu.Lock()
	after := nothing
	if w.out != nil {
		after = w.finish(nil)
	}
	w.mu.Unlock()
	after()
	return w.to.Close()
}

// start begins an excerpt, with the calls from a time on. After an error there is none.
func (w *writer) start(from int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out != nil {
		return errors.New("the trace before is not complete yet: try again")
	}
	o := &w.of.options
	out, err := output.Open(context.Background(), &o.Output, w.pid)
	if err != nil {
		return err
	}
	p := &part{trace: out, from: from, last: from, done: make(chan struct{})}
	if p.encoder, err = out.Encode(o.Format, o.Encoding); err == nil {
		err = w.state.replay(from, p.write)
	}
	if err != nil {
		return errors.Join(err, out.Discard())
	}
	w.out = p
	return nil
}

// stop ends the excerpt at a time, and returns a channel that is closed when it is complete; nil if
// there is none.
func (w *writer) stop(to int64) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out == nil {
		return nil
	}
	w.out.to = to
	return w.out.done
}

// path returns the path of the excerpt, empty if there is none.
func (w *writer) path() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out == nil {
		return ""
	}
	return w.out.trace.Path()
}

// finish completes the files. err is what ends the excerpt; nil if it ends as planned. What it
// returns is called without the lock.
func (w *writer) finish(err error) (after func()) {
	p := w.out
	w.out = nil
	if err == nil && !p.ended {
		at := p.last
		if p.to != 0 {
			at = p.to
		}
		err = p.write(&trace.Record{Kind: trace.KindEnd, Time: at, PID: int32(w.pid)})
	}
	err = errors.Join(err, p.encoder.Close(), p.trace.Close())
	return func() {
		if err != nil {
			w.of.fail(p.trace.Path(), err)
		}
		close(p.done)
	}
}

// discard removes an excerpt that has just begun.
func (w *writer) discard() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.out
	w.out = nil
	return p.trace.Discard()
}
