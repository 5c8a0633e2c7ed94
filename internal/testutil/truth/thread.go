package truth

import "rtrace-bpf/trace"

// kept is how many events before a difference are shown, and how many after it.
const kept = 4

// thread is the comparison of one thread: how far its log has come up in the trace.
type thread struct {
	tid    int32
	cursor *cursor
	events int // of the trace
	// entry is the next one with an effect, as far as it was looked for.
	entry *Entry
	// undone are the blocks of reallocs that failed between the last event and
	// entry.
	undone []uint64
	// half is the event that is still to come: the allocation of a move that is
	// in the trace as a free and an allocation. While it is, entry stays.
	half *Event
	// recent are the last events that agreed.
	recent [kept]Event
}

// look moves entry on to the next one that is in a trace, or may be. It is nil
// behind the last one.
func (t *thread) look() (*Entry, error) {
	if t.entry != nil {
		return t.entry, nil
	}
	for {
		e, err := t.cursor.next()
		if e == nil || err != nil {
			return nil, err
		}
		if !e.Done || e.Event().Op != trace.OpNone {
			t.entry = e
			return e, nil
		}
		if e.undone() {
			t.undone = append(t.undone, e.Old)
		}
	}
}

// agreed notes that an event was right, and with last that it was the whole entry.
func (t *thread) agreed(v Event, last bool) {
	t.recent[t.events%kept] = v
	t.events++
	if last {
		t.entry, t.half, t.undone = nil, nil, t.undone[:0]
	}
}
