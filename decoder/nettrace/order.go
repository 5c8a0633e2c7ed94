package nettrace

import (
	"slices"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// queue holds events until those before them are known. Their order is by time,
// and in the order of the stream where that is equal.
type queue struct {
	pages  [][]entry // each of pageSize
	count  int       // of entries
	order  []place   // of them
	merged []place   // reused
	runs   []int     // reused
	next   int       // in order: the first that was not delivered
	ready  int       // in order: the first that has to wait
	bytes  int       // of the blocks that events point into
	blocks []held
	lost   []gap
	last   uint64 // time of the event that was added last
	messy  bool   // order is not sorted
}

// entry is an event that waits. It has no pointers: there may be many. What it
// refers to is looked up when it is delivered.
type entry struct {
	wire.Head
	block   uint32 // in queue.blocks
	at      uint32 // in the block, as the next three are: where the event begins
	payload uint32
	// Ids of activities stand there, 0 for none.
	activity, related uint32
	thread            uint32 // in threadTable.all
}

// pageSize is how many entries are allocated at once: to move them takes longer
// than to make them.
const pageSize = 512

// held is a block that events point into.
type held struct {
	b    []byte
	base int64 // its offset in the stream
}

// gap says that events are missing; an entry with block noBlock refers to it by
// its payload.
type gap struct{ count, since uint64 }

const noBlock = 1<<32 - 1

// place is where an event is.
type place struct {
	time  uint64
	index uint32
}

// begin makes the events that are added from now on part of a block.
func (q *queue) begin(b []byte, base int64) {
	q.blocks = append(q.blocks, held{b, base})
	q.bytes += len(b)
}

func (q *queue) entry(i uint32) *entry { return &q.pages[i/pageSize][i%pageSize] }

// add returns a new event with the given time, in which anything may stand.
func (q *queue) add(time uint64) *entry {
	n := uint32(q.count)
	if q.count++; n/pageSize == uint32(len(q.pages)) {
		q.pages = append(q.pages, make([]entry, pageSize))
	}
	if time < q.last && int(n) > q.next {
		q.messy = true
	}
	q.last = time
	q.order = append(q.order, place{time, n})
	return q.entry(n)
}

// note adds that events of a thread are missing.
func (q *queue) note(t *Thread, n, time uint64) {
	e := q.add(time)
	*e = entry{Head: wire.Head{Time: time}, block: noBlock, payload: uint32(len(q.lost)), thread: t.slot}
	q.lost = append(q.lost, gap{n, t.seen})
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
func (q *queue) pop() *entry {
	if q.next == q.ready {
		return nil
	}
	e := q.entry(q.order[q.next].index)
	q.next++
	return e
}

// fill sets what is in the queue of an event.
func (q *queue) fill(e *Event, from *entry) {
	e.Head = from.Head
	e.Payload, e.Activity, e.Related, e.Lost = nil, nil, nil, 0
	if from.block == noBlock {
		gap := q.lost[from.payload]
		e.Lost, e.Since = gap.count, gap.since
		return
	}
	block := &q.blocks[from.block]
	e.Offset = block.base + int64(from.at)
	end := from.payload + from.Size
	e.Payload = block.b[from.payload:end:end]
	if from.activity != 0 {
		e.Activity = (*[16]byte)(block.b[from.activity:])
	}
	if from.related != 0 {
		e.Related = (*[16]byte)(block.b[from.related:])
	}
}

// waiting says whether there are events.
func (q *queue) waiting() int { return len(q.order) - q.next }

// reset forgets what was delivered, if that is all, and gives back its blocks.
func (q *queue) reset(release func([]byte)) {
	if q.waiting() > 0 {
		return
	}
	for _, h := range q.blocks {
		release(h.b)
	}
	clear(q.blocks)
	q.blocks, q.lost = q.blocks[:0], q.lost[:0]
	q.order = q.order[:0]
	if q.count > maxPages*pageSize {
		q.pages = q.pages[:maxPages]
	}
	q.count = 0
	q.next, q.ready, q.bytes, q.last, q.messy = 0, 0, 0, 0, false
}

// compact forgets what was delivered, though events are waiting, once that is
// most of what is held.
func (q *queue) compact(release func([]byte)) {
	if q.waiting() == 0 || q.next < q.waiting() || q.bytes < compactSize {
		return
	}
	q.sort()
	q.order = slices.Delete(q.order, 0, q.next)
	q.ready -= q.next
	q.next = 0
	from := queue{pages: q.pages}
	q.pages, q.count = nil, 0
	used := make([]bool, len(q.blocks))
	for i := range q.order {
		if i%pageSize == 0 {
			q.pages = append(q.pages, make([]entry, pageSize))
		}
		e := q.entry(uint32(i))
		*e = *from.entry(q.order[i].index)
		q.order[i].index = uint32(i)
		if e.block != noBlock {
			used[e.block] = true
		}
	}
	q.count = len(q.order)
	moved := make([]uint32, len(q.blocks))
	kept := q.blocks[:0]
	q.bytes = 0
	for i, h := range q.blocks {
		if !used[i] {
			release(h.b)
			continue
		}
		moved[i] = uint32(len(kept))
		kept = append(kept, h)
		q.bytes += len(h.b)
	}
	clear(q.blocks[len(kept):])
	q.blocks = kept
	for i := range q.count {
		if e := q.entry(uint32(i)); e.block != noBlock {
			e.block = moved[e.block]
		}
	}
}

// maxPages is how many pages are kept for later.
const maxPages = 128

// compactSize is how many bytes of blocks are held before it is worth to look.
const compactSize = 1 << 20

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
