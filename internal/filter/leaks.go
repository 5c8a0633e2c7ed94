// Package filter contains filters: each is a trace.Reader that reads another
// one and changes or drops records.
package filter

import (
	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/trace"
)

// Leaks drops the calls whose blocks do not outlive the trace, as package leak
// defines it. The first ReadRecord reads the whole source. Other records stay
// in their places among the calls. The records that remain are held in memory.
type Leaks struct {
	src    trace.Reader
	finder *leak.Finder
	others []other
	calls  leak.Leaks
	next   int   // number of the next call
	err    error // nil until the source is read
}

// other is a record that is not a call.
type other struct {
	after uint64 // number of calls before it
	rec   *trace.Record
}

var _ trace.Reader = (*Leaks)(nil)

// NewLeaks returns a Leaks that reads src.
func NewLeaks(src trace.Reader) *Leaks {
	return &Leaks{src: src, finder: leak.New()}
}

// NewStill returns a Leaks that reads src and keeps only the calls whose blocks
// are still live, or unknown, by the rules of live.Blocks.
func NewStill(src trace.Reader) *Leaks {
	return &Leaks{src: src, finder: leak.NewStill()}
}

// NewFed returns a Leaks like NewStill that feeds an Engine with the records of src, whose calls
// must be of one type of resource.
func NewFed(src trace.Reader, e *aggregate.Engine, resource func() string) *Leaks {
	return &Leaks{src: src, finder: leak.NewFed(e, resource)}
}

// Finder returns the finder of the filter. It is complete after the first
// ReadRecord or Fill.
func (l *Leaks) Finder() *leak.Finder { return l.finder }

// Fill reads the source now instead of in the first ReadRecord.
func (l *Leaks) Fill() {
	if l.err == nil {
		l.read()
	}
}

// Ordinal returns the position of the last call that was read among all calls
// of the source, counted from 1.
func (l *Leaks) Ordinal() uint64 { return l.calls.Ordinal(l.next - 1) }

// Unknown reports whether the block of the last call that was read is unknown.
func (l *Leaks) Unknown() bool { return l.calls.Unknown(l.next - 1) }

// ReadRecord implements trace.Reader. If the source ends with an error,
// ReadRecord returns it after the remaining records.
func (l *Leaks) ReadRecord(r *trace.Record) error {
	l.Fill()
	if len(l.others) > 0 && (l.next == l.calls.Len() || l.others[0].after < l.calls.Ordinal(l.next)) {
		*r = *l.others[0].rec
		l.others[0].rec = nil
		l.others = l.others[1:]
		return nil
	}
	if l.next < l.calls.Len() {
		l.calls.Record(l.next, r)
		l.next++
		return nil
	}
	return l.err
}

func (l *Leaks) read() {
	var (
		rec   trace.Record
		calls uint64
	)
	for {
		if l.err = l.src.ReadRecord(&rec); l.err != nil {
			break
		}
		l.finder.Add(&rec)
		if rec.Kind == trace.KindCall {
			calls++
		} else {
			l.others = append(l.others, other{calls, slim(&rec)})
		}
	}
	l.calls = l.finder.Leaks()
}

// slim is Clone without the data that earlier records left in other fields of
// r, so that their memory can be freed.
func slim(r *trace.Record) *trace.Record {
	c := r.Clone()
	c.Call = trace.Call{}
	if r.Kind != trace.KindOpaque {
		c.Opaque = trace.Opaque{}
	}
	return c
}

// SplitMoves splits each move into two calls, for formats without moves: a free
// and an allocation, which has the stack and the arguments. It numbers the
// calls from 1.
type SplitMoves struct {
	src  trace.Reader
	seq  uint64
	held bool // rec holds the allocation of a move
	rec  trace.Record
}

var _ trace.Reader = (*SplitMoves)(nil)

// NewSplitMoves returns a SplitMoves that reads src.
func NewSplitMoves(src trace.Reader) *SplitMoves { return &SplitMoves{src: src} }

// ReadRecord implements trace.Reader.
func (s *SplitMoves) ReadRecord(r *trace.Record) error {
	if s.held {
		s.held = false
		*r = s.rec
		return nil
	}
	if err := s.src.ReadRecord(r); err != nil {
		return err
	}
	if r.Kind != trace.KindCall {
		return nil
	}
	s.seq++
	c := &r.Call
	c.Seq = s.seq
	if c.Op != trace.OpMove {
		return nil
	}
	s.rec = *r
	s.seq++
	m := &s.rec.Call
	m.Op, m.Seq, m.OldID, m.EntryTime = trace.OpAlloc, s.seq, 0, 0
	s.held = true

	if c.EntryTime != 0 {
		r.Time = c.EntryTime
	}
	c.Op, c.ID, c.OldID, c.Size, c.EntryTime = trace.OpFree, c.OldID, 0, 0, 0
	c.Stack, c.Args = trace.Stack{}, nil
	return nil
}
