package sidefile

import (
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/trace"
)

// Overlay returns a reader of main that adds the information of its side file:
// calls get their thread, 64-bit size and stack quality, mappings their offset
// and base, and the records that the format of main cannot represent appear in
// their places.
//
// A side file that belongs to another trace is not used; warn, if not nil, is
// called with the reason. A side file that is truncated or damaged is used up
// to that place; see [Reader.Verdict]. Errors of main are returned unchanged.
func Overlay(main trace.Reader, file io.Reader, warn func(error)) *Reader {
	if warn == nil {
		warn = func(error) {}
	}
	return &Reader{main: original{r: main}, side: newSide(file), warn: warn}
}

// Reader is a reader from Overlay.
type Reader struct {
	main   original
	side   side
	clocks clocks
	warn   func(error)

	begun bool
	off   bool // the side file is not used
	known bool // the side file has a header
	ends  bool // main or the side file announces an End
}

// HeapInfo returns the side file's facts about the state of the heap, or nil.
// They are complete when the trace has been read.
func (o *Reader) HeapInfo() *HeapInfo { return o.side.heap }

var _ trace.Reader = (*Reader)(nil)

// ReadRecord implements trace.Reader.
func (o *Reader) ReadRecord(r *trace.Record) error {
	if !o.begun {
		o.begin()
	}
	switch {
	case o.off:
		return o.main.next(r)
	case !o.main.isHeld:
		o.main.err = o.main.next(r)
	case o.main.err == nil:
		*r = o.main.held
	}
	o.side.fill(o.main.pos)
	first, instead := o.due(r)
	if first == nil {
		return o.pass(r)
	}
	if o.main.err != nil {
		o.main.isHeld = true
	} else if o.main.isHeld = !instead; o.main.isHeld {
		o.main.held = *r
	}
	*r = *first
	o.clocks.convert(r)
	return nil
}

// pass returns main's record r or its error.
func (o *Reader) pass(r *trace.Record) error {
	m := &o.main
	m.isHeld = m.err != nil
	if m.isHeld {
		return m.err
	}
	switch r.Kind {
	case trace.KindCall:
		if r.PID == 0 {
			r.PID = m.pid
		}
		o.side.complete(r, m.pos)
		m.pos++
	case trace.KindEnd:
		m.sawEnd = true
	}
	return nil
}

// due removes and returns the record of the queue that comes before r, main's
// next record, or replaces it; nil if there is none.
func (o *Reader) due(r *trace.Record) (first *trace.Record, instead bool) {
	m := &o.main
	ended := m.err != nil
	if !ended && r.Kind != trace.KindCall && !held(r.Kind) {
		return nil, false // its place among the side file's records is unknown
	}
	for {
		next := o.side.first(m.pos)
		switch {
		case next == nil:
			return nil, false
		case next.Kind == trace.KindEnd:
			if ended && !m.sawEnd {
				if m.marked || !errors.Is(m.err, io.EOF) {
					return nil, false // a truncated trace did not end as planned
				}
				return o.side.take(), false
			}
			o.side.take() // main continues, or has its own End
		case !ended && r.Kind != trace.KindCall && r.Kind != trace.KindEnd:
			i := o.side.match(r, m.pos)
			if i < 0 {
				return nil, false
			}
			first = o.side.take()
			if first.Kind == trace.KindHeapGrow && i == 0 {
				// main's calls have addresses in this range.
				first.HeapGrow.Address = r.HeapGrow.Address
			}
			return first, i == 0
		default:
			return o.side.take(), false
		}
	}
}

// Verdict returns, after main has ended, an error if the two files are not
// complete: the side file is truncated or damaged, or it continues after main.
// It returns nil for a side file that is not used.
func (o *Reader) Verdict() error {
	f := &o.side
	f.finish()
	switch {
	case f.damage != nil:
		return fmt.Errorf("its side file cannot be read: %w", f.damage)
	case o.off:
		return nil
	case f.ended && f.endAt > o.main.pos:
		return fmt.Errorf("it has %d calls, and its side file is about %d", o.main.pos, f.endAt)
	case !f.ended && (o.ends || !o.known):
		return errors.New("its side file has no end")
	}
	return nil
}
