package sidefile

import (
	"errors"
	"io"
	"strings"

	"rtrace-bpf/trace"
)

// side is a side file that is read along with its trace.
type side struct {
	src    *source // nil when nothing is left to read
	heap   *HeapInfo
	damage error // why the file could not be read to its end

	queue []placed // read and not yet returned, from head on
	head  int
	ended bool   // the End was read
	endAt uint64 // its position

	cur   chunk
	nxt   chunk
	ahead bool // nxt is read and begins after the position of the trace
	runs  cursor
}

func newSide(r io.Reader) side { return side{src: newSource(r)} }

// begin reads the beginning of the file, and returns its Header and its Process; nil for
// what it does not have.
func (f *side) begin() (header, process *trace.Record, err error) {
	if err := f.src.begin(); err != nil {
		f.damage, f.src = err, nil
		return nil, nil, err
	}
	f.fill(0)
	for f.head < len(f.queue) {
		switch r := f.queue[f.head].r; r.Kind {
		case trace.KindHeader:
			header = r
		case trace.KindProcess:
			process = r
		default:
			return header, process, nil
		}
		f.take()
	}
	return header, process, nil
}

// drop forgets the file.
func (f *side) drop() { f.src, f.queue = nil, nil }

// first returns the first record of the queue if its position is not after pos, or nil.
func (f *side) first(pos uint64) *trace.Record {
	if f.head == len(f.queue) || f.queue[f.head].at > pos {
		return nil
	}
	return f.queue[f.head].r
}

// take removes the first record of the queue.
func (f *side) take() *trace.Record {
	r := f.queue[f.head].r
	f.queue[f.head].r = nil
	f.head++
	return r
}

// match returns the number of records of the queue before the side file's
// version of main's record r, or -1 if there is none.
func (f *side) match(r *trace.Record, pos uint64) int {
	for i, q := range f.queue[f.head:] {
		if q.at > pos {
			break
		}
		if q.r.Kind == r.Kind && same(q.r, r) {
			return i
		}
	}
	return -1
}

// fill reads the side file up to the line about the calls after pos.
func (f *side) fill(pos uint64) {
	if f.ahead && f.nxt.from > pos {
		return // the common case
	}
	if f.head > 0 {
		f.queue = append(f.queue[:0], f.queue[f.head:]...)
		f.head = 0
	}
	for len(f.queue) < maxQueue {
		if f.ahead {
			if f.nxt.from > pos {
				return
			}
			f.cur, f.nxt = f.nxt, f.cur
			f.ahead = false
			f.runs.reset(&f.cur)
		}
		if f.src == nil {
			return
		}
		isChunk, rec, err := f.src.next(&f.nxt)
		f.heap = f.src.heap
		switch {
		case errors.Is(err, io.EOF):
			f.src = nil
		case err != nil:
			f.damage = err
			f.src = nil
		case isChunk:
			f.ahead = true
		default:
			if rec.r.Kind == trace.KindEnd {
				f.ended, f.endAt = true, rec.at
			}
			f.queue = append(f.queue, rec)
		}
	}
}

// finish reads the file to its end. Only the position of its End is of interest.
func (f *side) finish() {
	for f.src != nil && f.damage == nil {
		_, rec, err := f.src.next(&f.nxt)
		switch {
		case errors.Is(err, io.EOF):
			f.src = nil
		case err != nil:
			f.damage = err
		case rec.r != nil && rec.r.Kind == trace.KindEnd:
			f.ended, f.endAt = true, rec.at
		}
	}
}

// complete adds the side file's information to a call.
func (f *side) complete(r *trace.Record, pos uint64) {
	if pos < f.cur.from || pos >= f.cur.to {
		return
	}
	if tid, ok := f.runs.tidAt(&f.cur, pos); ok {
		r.TID = tid
	}
	s := &r.Call.Stack
	if q := f.runs.stackAt(&f.cur, pos); q != nil {
		switch none := len(s.Frames) == 0; {
		case none == q.bare:
			s.End, s.FramePointer, s.Reason = q.end, q.fp, q.reason
		case none:
			s.End, s.FramePointer, s.Reason = trace.StackAbsent, false, ""
		}
	}
	if n, ok := f.runs.sizeAt(&f.cur, pos); ok && r.Call.Op != trace.OpFree {
		r.Call.Size = n
	}
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
	case trace.KindWindow:
		return side.Window == main.Window
	case trace.KindCost:
		return side.Cost == main.Cost
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
