package mtrc

import (
	"errors"
	"io"

	"rtrace-bpf/internal/live"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// Reader reads the records of a file. It is a trace.Reader whose strings belong to the
// caller. Each stream of the file is a process of its own: a Header, a Process and a
// Resource, then calls numbered from 1, and an End if the stream has its trailer. It
// uses memory for the blocks that are live at a time.
type Reader struct {
	s     *Scanner
	opts  Options
	event wire.Event

	blocks *live.Table // by index: size, and the address as value
	begin  int         // index of the next record that begins a stream
	seq    uint64
	err    error
	stats  Stats
}

// Stats counts what a Reader has read.
type Stats struct {
	ScanStats
	// Version is the version in the last header: "1.5.1, 64-bit, big-endian".
	Version string
	Calls   uint64
	// Unknown counts F events of blocks that are not live. They have no address and so
	// no record.
	Unknown uint64
	// Adopted counts R events of blocks that are not live. They are read as
	// allocations.
	Adopted uint64
	// Twice counts A events of blocks that are live. Both blocks are read; later events
	// with that index belong to the second.
	Twice uint64
}

var _ trace.Reader = (*Reader)(nil)

// NewReader reads the header and returns a reader of what follows. It returns a
// *trace.SyntaxError if r does not start with a header.
func NewReader(r io.Reader, o Options) (*Reader, error) {
	s, err := NewScanner(r, o)
	if err != nil {
		return nil, err
	}
	return &Reader{s: s, opts: s.opts, blocks: live.New()}, nil
}

// Stats returns the counters so far.
func (d *Reader) Stats() Stats {
	stats := d.stats
	stats.ScanStats = d.s.Stats()
	stats.Version = describe(d.s.Header())
	return stats
}

func describe(h wire.Header) string {
	text := wire.FormatVersion(h.Version)
	if h.Words == 8 {
		text += ", 64-bit"
	} else {
		text += ", 32-bit"
	}
	if h.Big {
		text += ", big-endian"
	}
	return text
}

// ReadRecord implements trace.Reader. Errors are sticky.
func (d *Reader) ReadRecord(rec *trace.Record) error {
	if d.err != nil {
		return d.err
	}
	if d.begin < len(beginnings) {
		d.start(rec, trace.KindNone)
		beginnings[d.begin](d, rec)
		d.begin++
		return nil
	}
	for {
		if err := d.s.Next(&d.event); err != nil {
			return d.end(rec, err)
		}
		if done, err := d.convert(rec); done || err != nil {
			d.err = err
			return err
		}
	}
}

// beginnings set the records that each stream begins with.
var beginnings = []func(*Reader, *trace.Record){
	func(d *Reader, rec *trace.Record) {
		h := d.s.Header()
		rec.Kind = trace.KindHeader
		rec.Header = trace.Header{
			Format: wire.Format, Version: wire.FormatVersion(h.Version), BigEndian: h.Big, PointerSize: h.Words,
		}
	},
	func(_ *Reader, rec *trace.Record) {
		rec.Kind = trace.KindProcess
		rec.Process = trace.Process{Depth: -1}
	},
	func(_ *Reader, rec *trace.Record) {
		rec.Kind = trace.KindResource
		rec.Resource = trace.Resource{ID: memory, Type: wire.Resource, Desc: "memory allocation in bytes"}
	},
}

// memory is the id of the only resource.
const memory = 1

// start resets the fields that all records share.
func (d *Reader) start(rec *trace.Record, kind trace.Kind) {
	rec.Kind = kind
	rec.Time = 0
	rec.PID, rec.TID, rec.CPU = 0, 0, 0
}

// end handles the end of a stream.
func (d *Reader) end(rec *trace.Record, err error) error {
	if !errors.Is(err, io.EOF) {
		d.err = err
		return err
	}
	whole := d.s.Whole()
	more, err := d.s.NextStream()
	switch {
	case err != nil:
		d.err = err
	case !more:
		d.err = io.EOF
	default:
		d.begin, d.seq = 0, 0
		d.blocks.Clear()
	}
	if whole {
		d.start(rec, trace.KindEnd)
		return nil
	}
	return d.ReadRecord(rec)
}
