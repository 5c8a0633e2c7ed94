package nettrace

import "slices"

// queue holds events until those before them are known. Their order is by time,
// and in the order of the stream where that is equal.
type queue struct {
	pages  [][]entry // each of pageSize
	spare  [][]entry // pages that are not in use
	other  [][]entry // reused
	count  int       // of entries
	order  []place   // of them
	merged []place   // reused
	runs   []int     // reused
	moved  []uint32  // reused
	next   int       // in order: the first that was not delivered
	ready  int       // in order: the first that has to wait
	bytes  int       // of the blocks that events point into
	blocks []held
	lost   []gap
	last   uint64 // time of the event that was added last
	messy  bool   // order is not sorted
}

// entry is an event that waits; its time is in its place. It has no pointers and is
// small: there may be many. What it refers to is looked up when it is delivered.
type entry struct {
	metadata, sequence, processor, stack, size uint32
	block                                      uint32 // in queue.blocks
	at                                         uint32 // where it begins in the block
	capture, thread                            uint32 // in threadTable.all
	// Where ids of activities stand in the block, 0 for none; in version 6
	// activity is the list of labels.
	activity, related uint32
	head              uint8 // bytes of it: 113 at most
	sorted            bool
}

// pageSize is how many entries are allocated at once: to move them takes longer
// than to make them, and many streams never have more waiting.
const pageSize = 128

// held is a block that events point into.
type held struct {
	b    []byte
	base int64 // its offset in the stream
}

// gap says that events are missing; an entry with block noBlock refers to it by
// its at.
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
	n := q.push()
	if time < q.last && int(n) > q.next {
		q.messy = true
	}
	q.last = time
	q.order = append(q.order, place{time, n})
	return q.entry(n)
}

// push makes room for an entry and returns its index.
func (q *queue) push() uint32 {
	n := uint32(q.count)
	if q.count++; n/pageSize == uint32(len(q.pages)) {
		q.page()
	}
	return n
}

func (q *queue) page() {
	if last := len(q.spare) - 1; last >= 0 {
		q.pages, q.spare = append(q.pages, q.spare[last]), q.spare[:last]
		return
	}
	q.pages = append(q.pages, make([]entry, pageSize))
}

// note adds that events of a thread are missing.
func (q *queue) note(t *Thread, n, time uint64) {
	*q.add(time) = entry{block: noBlock, at: uint32(len(q.lost)), thread: t.slot}
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

// pop returns the next event that is ready, with its time; nil if there is none. It
// is valid until something is added.
func (q *queue) pop() (e *entry, time uint64) {
	if q.next == q.ready {
		return nil, 0
	}
	p := q.order[q.next]
	q.next++
	return q.entry(p.index), p.time
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
// most of what is held. In the streams of runtimes events are always waiting.
func (q *queue) compact(release func([]byte)) {
	if q.waiting() == 0 || q.next < q.waiting() || q.next < compactCount && q.bytes < compactSize {
		return
	}
	q.sort()
	q.order = slices.Delete(q.order, 0, q.next)
	q.ready -= q.next
	q.next = 0
	from := queue{pages: q.pages}
	q.pages, q.other, q.count = q.other[:0], q.pages, 0
	q.moved = append(q.moved[:0], make([]uint32, len(q.blocks))...)
	for i := range q.order {
		e := q.entry(q.push())
		*e = *from.entry(q.order[i].index)
		q.order[i].index = uint32(i)
		if e.block != noBlock {
			q.moved[e.block] = 1
		}
	}
	q.spare = append(q.spare, from.pages...)
	if len(q.spare) > maxPages {
		clear(q.spare[maxPages:])
		q.spare = q.spare[:maxPages]
	}
	clear(q.other)
	kept := q.blocks[:0]
	q.bytes = 0
	for i, h := range q.blocks {
		if q.moved[i] == 0 {
			release(h.b)
			continue
		}
		q.moved[i] = uint32(len(kept))
		kept = append(kept, h)
		q.bytes += len(h.b)
	}
	clear(q.blocks[len(kept):])
	q.blocks = kept
	for i := range q.count {
		if e := q.entry(uint32(i)); e.block != noBlock {
			e.block = q.moved[e.block]
		}
	}
}

// maxPages is how many pages are kept for later.
const maxPages = 512

// So many events are delivered, or bytes of blocks held, before it is worth to look
// for what is not needed any more.
const (
	compactCount = 512
	compactSize  = 64 << 10
)

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
