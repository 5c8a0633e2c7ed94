package tracer

import (
	"math"
	"slices"
)

// queue holds the events of one ring in the order of their times.
type queue struct {
	events []event
	next   int
}

// room is how many more events may wait here.
func (q *queue) room() int { return queueLimit - (len(q.events) - q.next) }

// slot returns a place at the end for an event, to be filled and then settled
// or dropped. What it holds is left over from an earlier use.
func (q *queue) slot() *event {
	n := len(q.events)
	if n == cap(q.events) {
		q.events = slices.Grow(q.events, max(n, batchEvents))
	}
	q.events = q.events[:n+1]
	return &q.events[n]
}

// drop takes the last slot back.
func (q *queue) drop() { q.events = q.events[:len(q.events)-1] }

// settle takes the event in the last slot over. Events of one ring come in
// order except where one program preempted another between taking its place
// and reading its time; such an event is moved to where it belongs, so that
// times alone decide.
func (q *queue) settle() {
	i := len(q.events) - 1
	if i == q.next || q.events[i-1].time <= q.events[i].time {
		return
	}
	e := q.events[i]
	for ; i > q.next && q.events[i-1].time > e.time; i-- {
		q.events[i] = q.events[i-1]
	}
	q.events[i] = e
}

// push appends an event.
func (q *queue) push(e *event) {
	*q.slot() = *e
	q.settle()
}

// time returns the time of the first event, or the end of time.
func (q *queue) time() uint64 {
	if q.next < len(q.events) {
		return q.events[q.next].time
	}
	return math.MaxUint64
}

// compact drops what has been taken.
func (q *queue) compact() {
	if q.next == len(q.events) {
		q.events, q.next = q.events[:0], 0
	} else if q.next > len(q.events)/2 {
		n := copy(q.events, q.events[q.next:])
		q.events, q.next = q.events[:n], 0
	}
}

// merger puts the events of all rings into one order: by time. That is the
// order of cause and effect, since a time is read while its event happens.
type merger struct {
	queues []queue
	last   uint64 // time of the youngest event passed on
	late   uint64 // events of the programs that came after a younger one had been passed on
}

// merge appends to out the events that are not younger than watermark, at most
// room of them, and reports whether more are ready.
func (m *merger) merge(out []event, watermark uint64, room int) ([]event, bool) {
	end := len(out) + room
	for len(out) < end {
		first, second := m.heads()
		if first < 0 || m.queues[first].time() > watermark {
			return out, false
		}
		q := &m.queues[first]
		limit := min(second, watermark)
		// Runs are short while several CPUs are busy: copying one by one beats
		// a copy per run.
		i := q.next
		for ; i < len(q.events) && q.events[i].time <= limit && len(out) < end; i++ {
			out = append(out, q.events[i])
		}
		m.note(q.events[q.next:i])
		q.next = i
	}
	return out, true
}

// note counts the events of a run that come too late. Whether a side does, is
// seen by what it says (stream.side).
func (m *merger) note(run []event) {
	for i := range run {
		if run[i].time >= m.last {
			break
		}
		if run[i].kind != kindSide {
			m.late++
		}
	}
	m.last = max(m.last, run[len(run)-1].time)
}

// heads returns the queue with the oldest event, -1 if all are empty, and the
// time of the oldest event of the others.
func (m *merger) heads() (first int, second uint64) {
	first, second = -1, math.MaxUint64
	oldest := uint64(math.MaxUint64)
	for i := range m.queues {
		q := &m.queues[i]
		if q.next == len(q.events) {
			continue
		}
		switch t := q.events[q.next].time; {
		case t < oldest:
			first, oldest, second = i, t, oldest
		case t < second:
			second = t
		}
	}
	return first, second
}

// compact gives back memory that passed events took.
func (m *merger) compact() {
	for i := range m.queues {
		m.queues[i].compact()
	}
}
