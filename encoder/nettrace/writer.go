package nettrace

import (
	"errors"
	"fmt"
	"io"
	"slices"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

const (
	// blockAt is the size of a block in bytes at which it is written. The runtime
	// writes blocks of 100 KiB, and some readers accept no larger ones.
	blockAt = 96 << 10
	// interval is the number of bytes of events between sequence points. The stacks,
	// which are written again after one, are a small part of that.
	interval = 4 << 20
	// passAt is the number of buffered bytes at which they are written.
	passAt = 64 << 10
)

// Writer is a trace.Writer. Each Write on the underlying writer ends after a whole
// block.
//
// A header that is not the first record is kept, but does not begin another stream.
type Writer struct {
	w    io.Writer
	opts Options
	err  error // sticky
	cut  bool  // a write failed after a part of out

	out     []byte // whole blocks, not yet written
	written uint64 // bytes of the stream before out

	layout  layout
	started bool           // the beginning of the stream is in out
	waiting []trace.Record // the first records, until their process and time are known
	pid     int32          // the process of the stream
	pointer int            // bytes of an address in the process

	events  eventBlock
	defined defined
	stacks  stacks
	threads threads
	system  system
	since   int // bytes of events since the last sequence point
	until   int // limit of since

	payload []byte // of the event that is being made
	head    wire.Head
	time    int64  // of the event before
	seq     uint32 // number of the event before
	calls   uint64 // Seq of the call before
	stats   Stats
}

var _ trace.Writer = (*Writer)(nil)

var errClosed = errors.New("nettrace: writer is closed")

// New returns a Writer to w. It writes nothing before the first record that has a
// process.
func New(w io.Writer, opts Options) (*Writer, error) {
	if w == nil {
		return nil, errors.New("nettrace: no writer given")
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	e := &Writer{w: w, opts: opts, pointer: 8, until: interval}
	e.out = make([]byte, 0, passAt+2*blockAt)
	e.events.data = make([]byte, 0, blockAt+4096)
	e.layout = v4{}
	if opts.Version == V6 {
		e.layout = v6{}
	}
	e.stacks.init()
	return e, nil
}

// Stats returns the counters so far, including what is still buffered.
func (e *Writer) Stats() Stats { return e.stats }

// WriteRecord implements trace.Writer. Every kind has a place in this format.
func (e *Writer) WriteRecord(r *trace.Record) error {
	if e.err != nil {
		return e.err
	}
	if e.since >= e.until || e.stacks.full() {
		// Not within a record: its events refer to stacks.
		e.flush()
		e.sequencePoint()
	}
	if r.Kind == trace.KindCall && e.started {
		e.writeCall(r)
	} else if err := e.writeOther(r); err != nil {
		return err
	}
	if len(e.out) >= passAt {
		return e.pass()
	}
	return nil
}

// writeOther writes a record that is not a call, or any record before the stream has
// begun.
func (e *Writer) writeOther(r *trace.Record) error {
	if !e.started {
		rare := r.Kind != trace.KindCall && r.Kind != trace.KindEnd && rows[r.Kind].known
		if rare && (r.PID == 0 || r.Time == 0) && len(e.waiting) < maxWaiting {
			e.waiting = append(e.waiting, *r.Clone())
			return nil
		}
		e.begin(r)
	}
	if r.Kind == trace.KindCall {
		e.writeCall(r)
		return nil
	}
	if err := e.writeRecord(r); err != nil {
		return err
	}
	e.system.record(e, r)
	return nil
}

// maxWaiting is how many records are kept until a process is known.
const maxWaiting = 256

// begin writes the beginning of the stream and the records that wait for it. r is the
// next record, or nil.
func (e *Writer) begin(r *trace.Record) {
	e.started = true
	waiting := e.waiting
	e.waiting = nil
	if r != nil {
		e.time = max(r.Time, 0)
		waiting = append(waiting, *r)
	}
	var h trace.Header
	for i := range waiting {
		w := &waiting[i]
		if e.pid == 0 {
			e.pid = w.PID
		}
		if w.Kind == trace.KindHeader && h == (trace.Header{}) {
			h = w.Header
		}
	}
	if h.WallTime == 0 && h.ClockTime == 0 { // an approximation
		i := slices.IndexFunc(waiting, func(w trace.Record) bool { return w.Kind == trace.KindProcess })
		if i >= 0 {
			h.WallTime, h.ClockTime = waiting[i].Process.WallTime, e.time
		}
	}
	if h.PointerSize == 4 {
		e.pointer = 4
	}
	e.out = e.layout.head(e.out, e.start(&h))
	e.system.start()
	if e.opts.Version == V6 {
		e.threads.start()
	}
	if r != nil {
		waiting = waiting[:len(waiting)-1]
	}
	for i := range waiting {
		_ = e.writeRecord(&waiting[i]) // it has a place: a record without one does not wait
		e.system.record(e, &waiting[i])
	}
}

// flush completes the blocks that are begun. Blocks to which events refer precede them.
func (e *Writer) flush() {
	if len(e.defined.data) > 0 {
		e.block(wire.BlockMetadata, e.layout.metadataHead(), e.defined.data)
		e.defined.data = e.defined.data[:0]
	}
	if len(e.threads.data) > 0 {
		e.block(wire.BlockThread, nil, e.threads.data)
		e.threads.data = e.threads.data[:0]
	}
	if e.stacks.count > 0 {
		e.block(wire.BlockStack, e.stacks.head(), e.stacks.data)
		e.stacks.flushed()
	}
	if len(e.events.data) > 0 {
		e.since += len(e.events.data)
		e.block(wire.BlockEvent, e.events.head(), e.events.data)
		e.events.reset()
	}
}

func (e *Writer) block(kind wire.BlockKind, head, body []byte) {
	e.out = e.layout.block(e.out, e.written, kind, head, body)
}

// sequencePoint writes a sequence point with the number of the last event, and forgets
// the stacks.
func (e *Writer) sequencePoint() {
	e.block(wire.BlockSequence, nil, e.layout.sequencePoint(uint64(e.time), e.capture(), e.seq))
	e.stacks.forget()
	e.since = 0
	e.stats.Sequences++
}

// pass writes the buffer.
func (e *Writer) pass() error {
	if len(e.out) == 0 {
		return nil
	}
	n, err := e.w.Write(e.out)
	if err == nil && n < len(e.out) {
		err = io.ErrShortWrite
	}
	if err != nil {
		e.cut = n > 0 || e.written == 0
		e.err = fmt.Errorf("writing nettrace: %w", err)
	}
	e.written += uint64(len(e.out))
	e.out = e.out[:0]
	return e.err
}

// Flush implements trace.Writer.
func (e *Writer) Flush() error {
	if e.err != nil {
		return e.err
	}
	if e.started {
		e.flush()
	}
	return e.pass()
}

// Close implements trace.Writer. It writes the names of functions for other readers,
// and the end. An output without any record still becomes a valid stream. After a write
// that wrote nothing, as on a full disk, Close ends the stream after what was written
// before.
func (e *Writer) Close() error {
	if errors.Is(e.err, errClosed) {
		return nil
	}
	if e.err != nil {
		if !e.cut {
			e.cut = true
			_, _ = e.w.Write(e.layout.end(nil)) // without it the stream is cut, which readers report
		}
		return e.err
	}
	if !e.started {
		e.begin(nil)
	}
	e.system.end(e)
	e.flush()
	if e.seq > 0 {
		e.sequencePoint()
	}
	e.out = e.layout.end(e.out)
	err := e.pass()
	if err == nil {
		e.err = errClosed
	}
	return err
}
