package sidefile

import (
	"errors"
	"fmt"
	"io"
	"strings"

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
func Overlay(main trace.Reader, side io.Reader, warn func(error)) *Reader {
	if warn == nil {
		warn = func(error) {}
	}
	return &Reader{main: main, src: newSource(side), warn: warn}
}

// Reader is a reader from Overlay.
type Reader struct {
	main trace.Reader
	src  *source // nil when nothing is left to read
	warn func(error)

	begun      bool
	off        bool            // the side file is not used
	known      bool            // the side file has a header
	prelude    []*trace.Record // of main, read ahead up to its Process
	preludeErr error

	pos    uint64      // of the next call of main
	clock  trace.Clock // of main
	shift  int64       // from the clock of the side file to that of main
	pid    int32       // of main's Process
	sawEnd bool        // main has an End
	marked bool        // main announces an End
	ends   bool        // main or the side file announces an End
	ended  bool        // the End of the side file was read
	endAt  uint64      // its position
	damage error       // why the side file could not be read to its end

	isHeld  bool // held or heldErr was read from main and is returned next
	held    trace.Record
	heldErr error

	queue []placed // read from the side file and not yet returned, from head on
	head  int
	cur   chunk
	nxt   chunk
	ahead bool // nxt is read and begins after pos
	runs  cursor

	heap *HeapInfo
}

// HeapInfo returns the side file's facts about the state of the heap, or nil.
// They are complete when the trace has been read.
func (o *Reader) HeapInfo() *HeapInfo { return o.heap }

var _ trace.Reader = (*Reader)(nil)

// ReadRecord implements trace.Reader.
func (o *Reader) ReadRecord(r *trace.Record) error {
	if !o.begun {
		o.begin()
	}
	switch {
	case o.off:
		return o.next(r)
	case !o.isHeld:
		o.heldErr = o.next(r)
	case o.heldErr == nil:
		*r = o.held
	}
	o.fill()
	first, instead := o.due(r)
	if first == nil {
		return o.pass(r)
	}
	if o.heldErr != nil {
		o.isHeld = true
	} else if o.isHeld = !instead; o.isHeld {
		o.held = *r
	}
	*r = *first
	o.convert(r)
	return nil
}

// next reads a record of main.
func (o *Reader) next(r *trace.Record) error {
	if len(o.prelude) > 0 {
		*r = *o.prelude[0]
		o.prelude = o.prelude[1:]
		return nil
	}
	if o.preludeErr != nil {
		return o.preludeErr
	}
	return o.main.ReadRecord(r)
}

// pass returns main's record r or heldErr.
func (o *Reader) pass(r *trace.Record) error {
	o.isHeld = o.heldErr != nil
	if o.isHeld {
		return o.heldErr
	}
	switch r.Kind {
	case trace.KindCall:
		o.complete(r)
		o.pos++
	case trace.KindEnd:
		o.sawEnd = true
	}
	return nil
}

// due removes and returns the record of the queue that comes before r, main's
// next record, or replaces it; nil if there is none.
func (o *Reader) due(r *trace.Record) (first *trace.Record, instead bool) {
	ended := o.heldErr != nil
	if !ended && r.Kind != trace.KindCall && !held(r.Kind) {
		return nil, false // its place among the side file's records is unknown
	}
	for o.head < len(o.queue) && o.queue[o.head].at <= o.pos {
		switch {
		case o.queue[o.head].r.Kind == trace.KindEnd:
			if ended && !o.sawEnd {
				if o.marked || !errors.Is(o.heldErr, io.EOF) {
					return nil, false // a truncated trace did not end as planned
				}
				return o.take(), false
			}
			o.take() // main continues, or has its own End
		case !ended && r.Kind != trace.KindCall && r.Kind != trace.KindEnd:
			i := o.match(r)
			if i < 0 {
				return nil, false
			}
			first = o.take()
			if first.Kind == trace.KindHeapGrow && i == 0 {
				// main's calls have addresses in this range.
				first.HeapGrow.Address = r.HeapGrow.Address
			}
			return first, i == 0
		default:
			return o.take(), false
		}
	}
	return nil, false
}

// take removes the first record of the queue.
func (o *Reader) take() *trace.Record {
	r := o.queue[o.head].r
	o.queue[o.head].r = nil
	o.head++
	return r
}

// match returns the number of records of the queue before the side file's
// version of main's record r, or -1 if there is none.
func (o *Reader) match(r *trace.Record) int {
	for i, q := range o.queue[o.head:] {
		if q.at > o.pos {
			break
		}
		if q.r.Kind == r.Kind && same(q.r, r) {
			return i
		}
	}
	return -1
}

// same reports whether main's record may be the version of side, which has the
// same kind, in its format.
func same(side, main *trace.Record) bool {
	switch side.Kind {
	case trace.KindMapping, trace.KindUnmapping:
		return side.Mapping.End == main.Mapping.End && samePath(side.Mapping.Path, main.Mapping.Path)
	case trace.KindHeapGrow:
		// The legacy form of mtrc has only the low bits of an address and
		// truncates sizes.
		s, m := side.HeapGrow, main.HeapGrow
		cut := m.Size == bigSize-1 && s.Size >= bigSize
		return (s.Size == m.Size || cut) && s.Internal == m.Internal && (s.Address^m.Address)&(1<<20-1) == 0
	case trace.KindLost:
		return side.Lost.Count == main.Lost.Count && side.Lost.Reason == main.Lost.Reason
	case trace.KindModule:
		return samePath(side.Module.Path, main.Module.Path)
	case trace.KindThread:
		return side.TID == main.TID && side.Thread == main.Thread
	case trace.KindResource:
		return side.Resource.ID == main.Resource.ID && side.Resource.Type == main.Resource.Type
	case trace.KindFunction:
		return side.Function == main.Function
	case trace.KindRSS:
		return side.RSS == main.RSS
	case trace.KindExec:
		return side.Exec == main.Exec
	case trace.KindExit:
		return side.TID == main.TID && side.Exit == main.Exit
	}
	return false
}

// samePath reports whether a format may have written path as got: some truncate
// long texts.
func samePath(path, got string) bool {
	return path == got || len(got) >= 255 && strings.HasPrefix(path, got)
}

// fill reads the side file up to the line about the calls after pos.
func (o *Reader) fill() {
	if o.ahead && o.nxt.from > o.pos {
		return // the common case
	}
	if o.head > 0 {
		o.queue = append(o.queue[:0], o.queue[o.head:]...)
		o.head = 0
	}
	for len(o.queue) < maxQueue {
		if o.ahead {
			if o.nxt.from > o.pos {
				return
			}
			o.cur, o.nxt = o.nxt, o.cur
			o.ahead = false
			o.runs.reset(&o.cur)
		}
		if o.src == nil {
			return
		}
		isChunk, rec, err := o.src.next(&o.nxt)
		o.heap = o.src.heap
		switch {
		case errors.Is(err, io.EOF):
			o.src = nil
		case err != nil:
			o.damage = err
			o.src = nil
		case isChunk:
			o.ahead = true
		default:
			if rec.r.Kind == trace.KindEnd {
				o.ended, o.endAt = true, rec.at
			}
			o.queue = append(o.queue, rec)
		}
	}
}

// Verdict returns, after main has ended, an error if the two files are not
// complete: the side file is truncated or damaged, or it continues after main.
// It returns nil for a side file that is not used.
func (o *Reader) Verdict() error {
	for o.src != nil && o.damage == nil {
		_, rec, err := o.src.next(&o.nxt)
		switch {
		case errors.Is(err, io.EOF):
			o.src = nil
		case err != nil:
			o.damage = err
		case rec.r != nil && rec.r.Kind == trace.KindEnd:
			o.ended, o.endAt = true, rec.at
		}
	}
	switch {
	case o.damage != nil:
		return fmt.Errorf("its side file cannot be read: %w", o.damage)
	case o.off:
		return nil
	case o.ended && o.endAt > o.pos:
		return fmt.Errorf("it has %d calls, and its side file is about %d", o.pos, o.endAt)
	case !o.ended && (o.ends || !o.known):
		return errors.New("its side file has no end")
	}
	return nil
}

// complete adds the side file's information to a call.
func (o *Reader) complete(r *trace.Record) {
	if r.PID == 0 {
		r.PID = o.pid
	}
	if o.pos < o.cur.from || o.pos >= o.cur.to {
		return
	}
	if tid, ok := o.runs.tidAt(&o.cur, o.pos); ok {
		r.TID = tid
	}
	s := &r.Call.Stack
	if q := o.runs.stackAt(&o.cur, o.pos); q != nil {
		switch none := len(s.Frames) == 0; {
		case none == q.bare:
			s.End, s.FramePointer, s.Reason = q.end, q.fp, q.reason
		case none:
			s.End, s.FramePointer, s.Reason = trace.StackAbsent, false, ""
		}
	}
	if n, ok := o.runs.sizeAt(&o.cur, o.pos); ok && r.Call.Op != trace.OpFree {
		r.Call.Size = n
	}
}

const dayNanos = 24 * 3600 * 1e9

// convert converts the times of a record of the side file to main's clock.
func (o *Reader) convert(r *trace.Record) {
	r.Time = o.onClock(r.Time)
	if r.Kind == trace.KindLost {
		r.Lost.Since = o.onClock(r.Lost.Since)
	}
}

func (o *Reader) onClock(t int64) int64 {
	if t != 0 {
		t += o.shift
	}
	if o.clock == trace.ClockDay {
		t %= dayNanos
		t -= t % 1e6
	}
	return t
}
