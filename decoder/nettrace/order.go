package nettrace

// queue holds events until those before them are known. Their order is by time,
// and in the order of the stream where that is equal.
type queue struct {
	events []Event
	order  []place // of events[next:] when sorted
	merged []place // reused
	runs   []int   // reused
	next   int     // in order: the first that was not delivered
	ready  int     // in order: the first that has to wait
	bytes  int     // of the blocks that events point into
	blocks [][]byte
	last   uint64 // time of the event that was added last
	messy  bool   // order is not sorted
}

// place is where an event is.
type place struct {
	time  uint64
	index uint32
}

// add returns a new event with the given time.
func (q *queue) add(time uint64) *Event {
	n := len(q.events)
	if n == cap(q.events) {
		q.events = append(q.events, Event{})
	} else {
		q.events = q.events[:n+1]
	}
	if time < q.last && len(q.order) > q.next {
		q.messy = true
	}
	q.last = time
	q.order = append(q.order, place{time, uint32(n)})
	return &q.events[n]
}

// release makes those events ready that are not newer than the time given.
func (q *queue) release(time uint64) {
	q.sort()
	low, high := q.ready, len(q.order)
	for low < high {
		if mid := int(uint(low+high) >> 1); q.order[mid].time <= time {
			low = mid + 1
		} else {
			high = mid
		}
	}
	q.ready = low
}

// flush makes all events ready.
func (q *queue) flush() {
	q.sort()
	q.ready = len(q.order)
}

// pop returns the next event that is ready, nil if there is none. It is valid
// until something is added.
func (q *queue) pop() *Event {
	if q.next == q.ready {
		return nil
	}
	e := &q.events[q.order[q.next].index]
	q.next++
	return e
}

// waiting says whether there are events.
func (q *queue) waiting() int { return len(q.order) - q.next }

// reset forgets what was delivered, if that is all, and gives back its blocks.
func (q *queue) reset(release func([]byte)) {
	if q.waiting() > 0 {
		return
	}
	for _, b := range q.blocks {
		release(b)
	}
	clear(q.blocks)
	q.blocks = q.blocks[:0]
	q.events, q.order = q.events[:0], q.order[:0]
	q.next, q.ready, q.bytes, q.last, q.messy = 0, 0, 0, 0, false
}

// compact forgets what was delivered, though events are waiting, once that is
// most of what is held.
func (q *queue) compact(release func([]byte)) {
	if q.waiting() == 0 || q.next < q.waiting() || q.bytes < compactSize {
		return
	}
	q.sort()
	waiting := q.order[q.next:]
	size := 0
	for _, p := range waiting {
		size += len(q.events[p.index].Payload)
	}
	b := make([]byte, 0, size)
	events := make([]Event, 0, 2*len(waiting))
	for i := range waiting {
		e := q.events[waiting[i].index]
		from := len(b)
		b = append(b, e.Payload...)
		e.Payload = b[from:len(b):len(b)]
		e.Activity, e.Related = ownCopy(e.Activity), ownCopy(e.Related)
		events = append(events, e)
		waiting[i].index = uint32(i)
	}
	for _, block := range q.blocks {
		release(block)
	}
	clear(q.blocks)
	q.blocks = append(q.blocks[:0], b)
	q.bytes = len(b)
	q.events = events
	q.ready -= q.next
	q.order = append(q.order[:0], waiting...)
	q.next = 0
}

// compactSize is how many bytes of blocks are held before it is worth to look.
const compactSize = 1 << 20

func ownCopy(id *[16]byte) *[16]byte {
	if id == nil {
		return nil
	}
	own := *id
	return &own
}

// sort sorts what is waiting: runs of rising times, as each thread writes one,
// are merged pair by pair.
func (q *queue) sort() {
	if !q.messy {
		return
	}
	q.messy = false
	from := q.order[q.next:]
	q.runs = append(q.runs[:0], 0)
	for i := 1; i < len(from); i++ {
		if from[i].time < from[i-1].time {
			q.runs = append(q.runs, i)
		}
	}
	q.runs = append(q.runs, len(from))
	if cap(q.merged) < len(from) {
		q.merged = make([]place, cap(q.order))
	}
	to := q.merged[:len(from)]
	for len(q.runs) > 2 {
		n := 0
		for i := 0; i+1 < len(q.runs); i += 2 {
			start, mid, end := q.runs[i], q.runs[i+1], q.runs[i+1]
			if i+2 < len(q.runs) {
				end = q.runs[i+2]
			}
			merge(to[start:end], from[start:mid], from[mid:end])
			q.runs[n] = start
			n++
		}
		q.runs[n] = len(from)
		q.runs = q.runs[:n+1]
		from, to = to, from
	}
	if &from[0] != &q.order[q.next] {
		copy(q.order[q.next:], from)
	}
	q.last = from[len(from)-1].time
}

// merge merges a and b into to; where times are equal a goes before.
func merge(to, a, b []place) {
	for len(a) > 0 && len(b) > 0 {
		if b[0].time < a[0].time {
			to[0], b = b[0], b[1:]
		} else {
			to[0], a = a[0], a[1:]
		}
		to = to[1:]
	}
	copy(to, a)
	copy(to[len(a):], b)
}
