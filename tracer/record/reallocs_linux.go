package record

import (
	"rtrace-bpf/tracer/order"
)

// Limits on how long, and how many, events wait for a realloc to return.
const (
	holdTime   = 200_000_000 // ns of event time
	holdEvents = 64 << 10
)

// Further kinds of events, which only this package makes.
const (
	kindNone       = uint8(0)    // an entry that needs no event: its realloc is decided
	kindFreeEarly  = uint8(0x81) // a realloc took too long: its old block counts as freed
	kindAllocAgain = uint8(0x82) // that realloc failed: the old block is live again
)

// moves decides what each realloc was. Between its entry and its return, the old block
// may be freed and handed to another thread at any moment, so events after the entry wait
// for the return. If none of them took the block, the realloc is one move at its return.
// Otherwise it is a free at its entry and an allocation at its return
// (docs/design/decisions.md, 11).
type moves struct {
	held  []order.Event
	next  int               // index of the first event that is still held
	open  map[uint32]int    // thread → index in held of the entry of its realloc
	early map[uint32]uint64 // thread → old block of a realloc that took too long
	out   []order.Event
}

func newMoves() *moves {
	return &moves{open: map[uint32]int{}, early: map[uint32]uint64{}}
}

// pass reports whether e needs no decision, so that add need not be called.
func (m *moves) pass(e *order.Event) bool {
	return len(m.open) == 0 && len(m.early) == 0 && m.next == len(m.held) && e.Kind != order.KindMoveEnter
}

// add takes the next event in order and returns the events that are decided. They are
// valid until the next call.
func (m *moves) add(e *order.Event) []order.Event {
	m.out = m.out[:0]
	switch e.Kind {
	case order.KindMoveEnter:
		m.forget(e.TID)
		m.open[e.TID] = len(m.held)
		m.held = append(m.held, *e)
	case order.KindMove, order.KindMoveUndone, order.KindFree:
		m.finish(e)
	default:
		if e.Kind == order.KindSide && order.SideKind(e.Function) == order.SideExit {
			m.forget(e.TID)
		}
		m.held = append(m.held, *e)
	}
	return m.release(e.Time)
}

// finish decides the realloc of e's thread if e ends one.
func (m *moves) finish(e *order.Event) {
	if old, ok := m.early[e.TID]; ok && e.Ends(old) {
		delete(m.early, e.TID)
		switch e.Kind {
		case order.KindMove:
			m.held = append(m.held, e.AsAlloc())
		case order.KindMoveUndone:
			again := *e
			again.Kind = kindAllocAgain
			m.held = append(m.held, again)
		}
		return
	}
	i, ok := m.open[e.TID]
	if !ok || !e.Ends(m.held[i].Addr) {
		m.held = append(m.held, *e)
		return
	}
	delete(m.open, e.TID)
	entry := &m.held[i]
	taken := m.taken(i, entry.Addr)
	entry.Kind = kindNone
	if e.Kind == order.KindMoveUndone {
		return
	}
	if !taken {
		m.held = append(m.held, *e)
		return
	}
	entry.Kind = order.KindFree
	if e.Kind == order.KindMove {
		m.held = append(m.held, e.AsAlloc())
	}
}

// taken reports whether a held event after index i allocated block.
func (m *moves) taken(i int, block uint64) bool {
	for j := i + 1; j < len(m.held); j++ {
		if k := m.held[j].Kind; (k == order.KindAlloc || k == order.KindMove) && m.held[j].Addr == block {
			return true
		}
	}
	return false
}

// forget drops the open realloc of a thread, which will not return. Its old block stays
// live.
func (m *moves) forget(tid uint32) {
	if i, ok := m.open[tid]; ok {
		m.held[i].Kind = kindNone
		delete(m.open, tid)
	}
	delete(m.early, tid)
}

// release moves the events before the first open realloc to out.
func (m *moves) release(now uint64) []order.Event {
	for m.next < len(m.held) {
		e := &m.held[m.next]
		if e.Kind == order.KindMoveEnter {
			if now < e.Time+holdTime && len(m.held)-m.next < holdEvents {
				break
			}
			delete(m.open, e.TID)
			m.early[e.TID] = e.Addr
			e.Kind = kindFreeEarly
		}
		if e.Kind != kindNone {
			m.out = append(m.out, *e)
		}
		m.next++
	}
	if m.next == len(m.held) {
		m.held, m.next = m.held[:0], 0
	} else if m.next > holdEvents {
		m.shift()
	}
	return m.out
}

// shift drops the released events at the beginning of held.
func (m *moves) shift() {
	n := copy(m.held, m.held[m.next:])
	m.held = m.held[:n]
	for tid := range m.open {
		m.open[tid] -= m.next
	}
	m.next = 0
}

// flush ends the trace: reallocs that are still open did not happen.
func (m *moves) flush() []order.Event {
	m.out = m.out[:0]
	for tid := range m.open {
		m.forget(tid)
	}
	return m.release(0)
}
