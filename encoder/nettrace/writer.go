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
	// blockAt is the number of bytes of a block at which it is written. The
	// runtime writes blocks of 100 KiB, and readers are known that take no more.
	blockAt = 96 << 10
	// interval is the number of bytes of events between sequence points: what is
	// written again behind one, the stacks, is a small part of it.
	interval = 4 << 20
	// passAt is the number of buffered bytes at which they are written.
	passAt = 64 << 10
)

// Writer is a trace.Writer. Each Write on the underlying writer ends behind a
// whole block.
//
// A header that is not the first record is kept, but begins no other stream.
type Writer struct {
	w    io.Writer
	opts Options
	err  error // sticky
	cut  bool  // a write has failed within what is in out

	out     []byte // whole blocks, not yet written
	written uint64 // bytes of the stream in front of out

	layout  layout
	started bool           // the head is in out
	waiting []trace.Record // the first, until it is known which process they are of, and when
	pid     int32          // the process of the stream
	pointer int            // bytes of an address of the process

	events  eventBlock
	defined defined
	stacks  stacks
	threads threads
	system  system
	since   int // bytes of events since the last sequence point
	until   int // how many there are at most

	payload []byte // of the event that is being made
	head    wire.Head
	time    int64  // of the event before
	seq     uint32 // number of the event before
	calls   uint64 // Seq of the call before
	stats   Stats
}

var _ trace.Writer = (*Writer)(nil)

var errClosed = errors.New("nettrace: writer is closed")

// New returns a Writer to w. It writes nothing before the first record that is of
// a process.
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

// Stats returns the counters so far; they include what is still buffered.
func (e *Writer) Stats() Stats { return e.stats }

// WriteRecord implements trace.Writer. Every kind has a place in this format.
func (e *Writer) WriteRecord(r *trace.Record) error {
	if e.err != nil {
		return e.err
	}
	if e.since >= e.until || e.stacks.full() {
		// Not in the middle of a record: its events refer to stacks.
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

// writeOther writes what is rare.
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

// begin writes the head of the stream, and what waits for it. r is the record that
// comes next, or nil.
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
	if h.WallTime == 0 && h.ClockTime == 0 { // about
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
		_ = e.writeRecord(&waiting[i]) // it has a place: what has none did not wait
		e.system.record(e, &waiting[i])
	}
}

// flush completes the blocks that are begun. What events refer to stands in front
// of them.
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

// sequencePoint says which event was the last, and forgets the stacks.
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

// Close implements trace.Writer. It writes the names of functions for other
// readers, and the end. An output without any record still becomes a valid
// stream. After a write of which nothing came through, as on a full disk, Close ends
// the stream behind what came before.
func (e *Writer) Close() error {
	if errors.Is(e.err, errClosed) {
		return nil
	}
	if e.err != nil {
		if !e.cut {
			e.cut = true
			_, _ = e.w.Write(e.layout.end(nil)) // without it the stream is cut, which readers say
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
