package order

import (
	"math"
	"slices"
)

// Queue holds the events of one ring in the order of their times.
type Queue struct {
	Events []Event
	next   int
}

// Room returns how many more events the queue accepts.
func (q *Queue) Room() int { return queueLimit - (len(q.Events) - q.next) }

// slot returns a place at the end for an event, to be filled and then settled or dropped.
// Its contents are left from an earlier use.
func (q *Queue) slot() *Event {
	n := len(q.Events)
	if n == cap(q.Events) {
		q.Events = slices.Grow(q.Events, max(n, BatchEvents))
	}
	q.Events = q.Events[:n+1]
	return &q.Events[n]
}

// drop removes the last slot.
func (q *Queue) drop() { q.Events = q.Events[:len(q.Events)-1] }

// settle keeps the event in the last slot. Events of one ring come in order, except where
// one program preempted another between reserving its place and reading its time. settle
// moves such an event to its place by time.
func (q *Queue) settle() {
	i := len(q.Events) - 1
	if i == q.next || q.Events[i-1].Time <= q.Events[i].Time {
		return
	}
	e := q.Events[i]
	for ; i > q.next && q.Events[i-1].Time > e.Time; i-- {
		q.Events[i] = q.Events[i-1]
	}
	q.Events[i] = e
}

// Push appends an event.
func (q *Queue) Push(e *Event) {
	*q.slot() = *e
	q.settle()
}

// time returns the time of the first event, or the largest time if the queue is empty.
func (q *Queue) time() uint64 {
	if q.next < len(q.Events) {
		return q.Events[q.next].Time
	}
	return math.MaxUint64
}

// compact removes the events that were taken.
func (q *Queue) compact() {
	if q.next == len(q.Events) {
		q.Events, q.next = q.Events[:0], 0
	} else if q.next > len(q.Events)/2 {
		n := copy(q.Events, q.Events[q.next:])
		q.Events, q.next = q.Events[:n], 0
	}
}

// Merger brings the events of all rings into one order, by time. Causes come before their
// effects, because the time is read while the event happens.
type Merger struct {
	Queues []Queue
	last   uint64 // time of the latest event passed on
	Late   uint64 // events of the programs that came after a later one had been passed on
}

// Merge appends to out the events that are not later than watermark, at most room of
// them, and reports whether more may be ready.
func (m *Merger) Merge(out []Event, watermark uint64, room int) ([]Event, bool) {
	end := len(out) + room
	for len(out) < end {
		first, second := m.heads()
		if first < 0 || m.Queues[first].time() > watermark {
			return out, false
		}
		q := &m.Queues[first]
		limit := min(second, watermark)
		// Runs are short while several CPUs are busy: copying one by one is faster than
		// one copy per run.
		i := q.next
		for ; i < len(q.Events) && q.Events[i].Time <= limit && len(out) < end; i++ {
			out = append(out, q.Events[i])
		}
		m.note(q.Events[q.next:i])
		q.next = i
	}
	return out, true
}

// note counts the events of a run that come too late. It does not count sides: whether a
// late side matters depends on its contents, which record.Stream decides.
func (m *Merger) note(run []Event) {
	for i := range run {
		if run[i].Time >= m.last {
			break
		}
		if run[i].Kind != KindSide {
			m.Late++
		}
	}
	m.last = max(m.last, run[len(run)-1].Time)
}

// heads returns the queue with the earliest event, -1 if all are empty, and the time of
// the earliest event of the others.
func (m *Merger) heads() (first int, second uint64) {
	first, second = -1, math.MaxUint64
	oldest := uint64(math.MaxUint64)
	for i := range m.Queues {
		q := &m.Queues[i]
		if q.next == len(q.Events) {
			continue
		}
		switch t := q.Events[q.next].Time; {
		case t < oldest:
			first, oldest, second = i, t, oldest
		case t < second:
			second = t
		}
	}
	return first, second
}

// Compact releases the memory of events that were passed on.
func (m *Merger) Compact() {
	for i := range m.Queues {
		m.Queues[i].compact()
	}
}
