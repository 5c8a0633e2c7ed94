package digest

import (
	"math/bits"
	"strings"

	"rtrace-bpf/trace"
)

// maxMarks bounds the number of contexts.
const maxMarks = 1 << 10

// Mark is a context: a phase of the program, or a mark set by the user.
type Mark struct {
	Name string
	ID   uint32 // the bit
	// Event and Time are the number of events before its declaration and the
	// time of the declaration.
	Event uint64
	Time  int64
	Calls uint64 // made in it
	// ByEvent and ByTime are the intervals in which it was entered, from and
	// to, with the resolution of the curves. Contexts that share a bit share
	// them, too.
	ByEvent, ByTime [][2]uint64
}

// contexts counts the calls in each context.
type contexts struct {
	marks           []Mark
	byEvent, byTime masks
	calls           [32]uint64 // by bit
}

// declare adds a context that is declared after a number of events, unless it is known.
func (k *contexts) declare(c *trace.Context, event uint64, now int64) {
	if len(k.marks) == maxMarks {
		return
	}
	for i := range k.marks {
		if m := &k.marks[i]; m.ID == c.ID && m.Name == c.Name {
			return
		}
	}
	k.marks = append(k.marks, Mark{Name: strings.Clone(c.Name), ID: c.ID, Event: event, Time: now})
}

// add counts a call that was made in contexts.
func (k *contexts) add(mask uint32, event uint64, now int64) {
	k.byEvent.add(event-1, mask)
	k.byTime.add(uint64(now), mask)
	for i := range k.calls {
		if mask>>i&1 != 0 {
			k.calls[i]++
		}
	}
}

// finish returns the marks, with their intervals.
func (k *contexts) finish() []Mark {
	for i := range k.marks {
		m := &k.marks[i]
		if m.ID == 0 || m.ID&(m.ID-1) != 0 {
			continue
		}
		m.Calls = k.calls[bits.TrailingZeros32(m.ID)]
		m.ByEvent, m.ByTime = k.byEvent.spans(m.ID), k.byTime.spans(m.ID)
	}
	return k.marks
}
