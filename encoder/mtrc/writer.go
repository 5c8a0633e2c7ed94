package mtrc

import (
	"errors"
	"io"
	"math"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// Writer is a trace.Writer. Each Write on the underlying writer ends after a whole
// record.
//
// A Header starts a stream, and so does whatever follows an End; a file may have
// several streams. All processes in between are in one stream. A file without any event
// is valid, too.
type Writer struct {
	out  binio.Output
	opts Options

	header  wire.Header
	state   state
	source  bool // events have a Source
	indexer *Indexer
	blocks  int     // number of events of blocks that the last record became
	legacy  *legacy // nil without Options.Legacy

	functions, files names
	cutNames, wide   uint64
}

// state is the position of the writer in the file.
type state uint8

const (
	fresh  state = iota // nothing is written or pending
	due                 // a stream is pending: its header is not yet written
	open                // in a stream
	behind              // after a trailer
)

var _ trace.Writer = (*Writer)(nil)

// New returns a Writer to w.
func New(w io.Writer, opts Options) (*Writer, error) {
	if w == nil {
		return nil, errors.New("mtrc: no writer given")
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	m := &Writer{out: binio.NewOutput(w, "mtrc", 4096), opts: opts, indexer: NewIndexer()}
	if opts.Legacy {
		m.legacy = newLegacy()
		m.indexer = newIndexer(wire.LegacyLimit)
		m.indexer.forget = m.legacy.remove
	}
	m.setHeader(&trace.Header{})
	return m, nil
}

// Stats returns the counters so far.
func (m *Writer) Stats() Stats {
	s := Stats{IndexStats: m.indexer.Stats(), CutNames: m.cutNames, Wide: m.wide}
	if m.legacy != nil {
		s.LegacyStats = m.legacy.stats
	}
	return s
}

// Positions returns the number of positions of the record that was written last.
func (m *Writer) Positions() int { return m.blocks }

// WriteRecord implements trace.Writer. Header, Call and HeapGrow have a place in the
// format. Resource, Exec and Exit decide which calls have one.
func (m *Writer) WriteRecord(r *trace.Record) error {
	if err := m.out.Err(); err != nil {
		return err
	}
	m.blocks = 0
	switch r.Kind {
	case trace.KindHeader:
		m.endStream()
		m.setHeader(&r.Header)
		m.state = due
	case trace.KindProcess:
		if m.state != open {
			m.state = due
		}
	case trace.KindEnd:
		m.endStream()
	default:
		events := m.indexer.Events(r)
		for i := range events {
			m.write(&events[i], r.PID)
		}
		if r.Kind != trace.KindHeapGrow {
			m.blocks = len(events)
		}
	}
	return m.out.Pass()
}

// setHeader decides the contents of the next stream's header.
func (m *Writer) setHeader(h *trace.Header) {
	m.header = wire.Header{Words: m.opts.Words, Big: h.BigEndian, Version: wire.Version}
	if m.header.Words == 0 {
		m.header.Words = 8
		if h.PointerSize == 4 && !m.opts.Legacy {
			m.header.Words = 4
		}
	}
	if h.Format != wire.Format || m.opts.Legacy {
		return
	}
	v, ok := wire.ParseVersion(h.Version)
	if !ok || v >= wire.VersionEnd || v == 0 && m.header.Words == 4 {
		return // version 0 would read as part of an order word of 8 bytes
	}
	m.header.Version = v
}

// beginStream writes the header unless it is written.
func (m *Writer) beginStream() {
	if m.state == open {
		return
	}
	m.state = open
	order := binio.Order{Big: m.header.Big, Pointer: m.header.Words}
	m.out.Buf = append(m.out.Buf, wire.Magic...)
	m.out.Buf = order.AppendPtr(m.out.Buf, 1)
	m.out.Buf = order.AppendPtr(m.out.Buf, m.header.Version)
	m.source = m.header.HasSource()
}

// endStream writes the trailer of the stream, if a stream is open or pending.
func (m *Writer) endStream() {
	if m.state == due {
		m.beginStream()
	}
	if m.state != open {
		return
	}
	m.out.Buf = append(m.out.Buf, wire.Magic...)
	m.state = behind
	m.reset()
}

// reset forgets the state of a stream.
func (m *Writer) reset() {
	m.indexer.Reset()
	m.functions.clear()
	m.files.clear()
	if m.legacy != nil {
		m.legacy.reset()
	}
}

// write writes an event of a process.
func (m *Writer) write(e *wire.Event, pid int32) {
	m.beginStream()
	if m.legacy != nil {
		m.legacy.fit(e, pid)
	}
	if m.header.Words == 4 && (e.Index|e.Address|e.Size|e.Source.Thread|e.Source.Line) > math.MaxUint32 {
		m.wide++
	}
	b := append(m.out.Buf, byte(e.Kind))
	switch e.Kind {
	case wire.Heap, wire.Internal:
		m.out.Buf = binio.AppendUleb128(binio.AppendUleb128(b, e.Address), e.Size)
		return
	case wire.Free:
		b = binio.AppendUleb128(b, e.Index)
	default:
		b = binio.AppendUleb128(b, e.Index)
		b = binio.AppendUleb128(b, e.Address)
		b = binio.AppendUleb128(b, e.Size)
	}
	if m.source {
		var cut bool
		b = binio.AppendUleb128(b, e.Source.Thread)
		if b, cut = m.functions.append(b, e.Source.Function.Text); cut {
			m.cutNames++
		}
		if b, cut = m.files.append(b, e.Source.File.Text); cut {
			m.cutNames++
		}
		b = binio.AppendUleb128(b, e.Source.Line)
	}
	m.out.Buf = b
}

// Flush implements trace.Writer. It writes the header of a pending stream.
func (m *Writer) Flush() error {
	if m.out.Err() == nil && m.state == due {
		m.beginStream()
	}
	return m.out.Flush()
}

// Close implements trace.Writer. It writes the trailer.
func (m *Writer) Close() error {
	if m.out.Err() == nil {
		if m.state == fresh {
			m.state = due
		}
		m.endStream()
	}
	return m.out.Close()
}
