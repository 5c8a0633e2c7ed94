package truth

import "rtrace-bpf/trace"

// kept is the number of events shown before a difference, and after it.
const kept = 4

// thread is the state of the comparison for one thread.
type thread struct {
	tid    int32
	cursor *cursor
	events int // of the trace
	// entry is the next entry with an effect, if it was already looked for.
	entry *Entry
	// undone holds the blocks of reallocs that failed between the last event and entry.
	undone []uint64
	// half is the expected second event of a move that is recorded as a free and an allocation.
	// While it is set, entry stays.
	half *Event
	// recent holds the last events that agreed.
	recent [kept]Event
}

// look moves entry on to the next one that is in a trace, or may be. It is nil after the last
// one.
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

// agreed records that an event was right. last reports that it completes the entry.
func (t *thread) agreed(v Event, last bool) {
	t.recent[t.events%kept] = v
	t.events++
	if last {
		t.entry, t.half, t.undone = nil, nil, t.undone[:0]
	}
}
