package nettrace

import (
	"errors"
	"io"

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
)

// Writer is a trace.Writer. Each Write on the underlying writer ends after a whole
// block.
//
// A header that is not the first record is kept, but does not begin another stream.
type Writer struct {
	stream
	opts    Options
	prelude prelude
	process process

	events   eventBlock
	defined  defined
	stacks   stacks
	threads  threads
	system   system
	interval int // bytes of events between sequence points

	payload payload   // of the event that is being made
	head    wire.Head // of that event; Sequence is the number of the event before
	time    int64     // of the event before
	calls   uint64    // Seq of the call before
	stats   Stats
}

var _ trace.Writer = (*Writer)(nil)

// New returns a Writer to w. It writes nothing before the first record that has a
// process.
func New(w io.Writer, opts Options) (*Writer, error) {
	if w == nil {
		return nil, errors.New("nettrace: no writer given")
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	e := &Writer{opts: opts, process: process{pointer: 8}, interval: interval}
	e.stream = stream{w: w, out: make([]byte, 0, passAt+2*blockAt), layout: v4{}}
	if opts.Version == V6 {
		e.layout = v6{}
	}
	e.events.data = make([]byte, 0, blockAt+4096)
	e.defined.layout = e.layout
	e.stacks.init()
	return e, nil
}

// Stats returns the counters so far, including what is still buffered.
func (e *Writer) Stats() Stats {
	s := e.stats
	s.CutStrings = e.payload.cut
	return s
}

// WriteRecord implements trace.Writer. Every kind has a place in this format.
func (e *Writer) WriteRecord(r *trace.Record) error {
	if e.err != nil {
		return e.err
	}
	if e.events.since >= e.interval || e.stacks.full() {
		// Not within a record: its events refer to stacks.
		e.flush()
		e.sequencePoint()
	}
	if r.Kind == trace.KindCall && e.prelude.over {
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
	if !e.prelude.over {
		if e.prelude.keep(r) {
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

// begin writes the beginning of the stream and the records that wait for it. r is the
// next record, or nil.
func (e *Writer) begin(r *trace.Record) {
	if r != nil {
		e.time = max(r.Time, 0)
	}
	h, pid, waiting := e.prelude.end(r, e.time)
	e.process.pid = pid
	if h.PointerSize == 4 {
		e.process.pointer = 4
	}
	e.out = e.layout.head(e.out, newStart(&h, e.process, e.opts.Processors))
	e.system.start()
	e.threads.start(e.opts.Version, pid)
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
		e.block(wire.BlockEvent, e.events.head(), e.events.data)
		e.events.reset()
	}
}

// sequencePoint writes a sequence point with the number of the last event, and forgets
// the stacks.
func (e *Writer) sequencePoint() {
	e.block(wire.BlockSequence, nil, e.layout.sequencePoint(uint64(e.time), e.threads.capture, e.head.Sequence))
	e.stacks.forget()
	e.events.since = 0
	e.stats.Sequences++
}

// Flush implements trace.Writer.
func (e *Writer) Flush() error {
	if e.err != nil {
		return e.err
	}
	if e.prelude.over {
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
		e.stop()
		return e.err
	}
	if !e.prelude.over {
		e.begin(nil)
	}
	e.system.end(e)
	e.flush()
	if e.head.Sequence > 0 {
		e.sequencePoint()
	}
	return e.end()
}
