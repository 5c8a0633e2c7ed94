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

// Room is how many more events may wait here.
func (q *Queue) Room() int { return queueLimit - (len(q.Events) - q.next) }

// slot returns a place at the end for an event, to be filled and then settled
// or dropped. What it holds is left over from an earlier use.
func (q *Queue) slot() *Event {
	n := len(q.Events)
	if n == cap(q.Events) {
		q.Events = slices.Grow(q.Events, max(n, BatchEvents))
	}
	q.Events = q.Events[:n+1]
	return &q.Events[n]
}

// drop takes the last slot back.
func (q *Queue) drop() { q.Events = q.Events[:len(q.Events)-1] }

// settle takes the event in the last slot over. Events of one ring come in
// order except where one program preempted another between taking its place
// and reading its time; such an event is moved to where it belongs, so that
// times alone decide.
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

// time returns the time of the first event, or the end of time.
func (q *Queue) time() uint64 {
	if q.next < len(q.Events) {
		return q.Events[q.next].Time
	}
	return math.MaxUint64
}

// compact drops what has been taken.
func (q *Queue) compact() {
	if q.next == len(q.Events) {
		q.Events, q.next = q.Events[:0], 0
	} else if q.next > len(q.Events)/2 {
		n := copy(q.Events, q.Events[q.next:])
		q.Events, q.next = q.Events[:n], 0
	}
}

// Merger puts the events of all rings into one order: by time. That is the
// order of cause and effect, since a time is read while its event happens.
type Merger struct {
	Queues []Queue
	last   uint64 // time of the youngest event passed on
	Late   uint64 // events of the programs that came after a younger one had been passed on
}

// Merge appends to out the events that are not younger than watermark, at most
// room of them, and reports whether more are ready.
func (m *Merger) Merge(out []Event, watermark uint64, room int) ([]Event, bool) {
	end := len(out) + room
	for len(out) < end {
		first, second := m.heads()
		if first < 0 || m.Queues[first].time() > watermark {
			return out, false
		}
		q := &m.Queues[first]
		limit := min(second, watermark)
		// Runs are short while several CPUs are busy: copying one by one beats
		// a copy per run.
		i := q.next
		for ; i < len(q.Events) && q.Events[i].Time <= limit && len(out) < end; i++ {
			out = append(out, q.Events[i])
		}
		m.note(q.Events[q.next:i])
		q.next = i
	}
	return out, true
}

// note counts the events of a run that come too late. Whether a side does, is
// seen by what it says (stream.side).
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

// heads returns the queue with the oldest event, -1 if all are empty, and the
// time of the oldest event of the others.
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

// Compact gives back memory that passed events took.
func (m *Merger) Compact() {
	for i := range m.Queues {
		m.Queues[i].compact()
	}
}
