package nettrace

import "slices"

// queue holds events until all earlier ones are known. It orders them by time, and
// events with equal times as they are in the stream.
type queue struct {
	pages  [][]entry // each of pageSize
	spare  [][]entry // unused pages
	other  [][]entry // reused
	count  int       // number of entries
	order  []place   // of the entries
	merged []place   // reused
	runs   []int     // reused
	moved  []uint32  // reused
	next   int       // index in order: the first that was not delivered
	ready  int       // index in order: the first that has to wait
	bytes  int       // of the blocks that the events point into
	blocks []held
	lost   []gap
	last   uint64 // time of the event that was added last
	messy  bool   // order is not sorted
}

// entry is an event that waits; its time is in its place. It has no pointers and is
// small, because there may be many. What it refers to is looked up when it is
// delivered.
type entry struct {
	metadata, sequence, processor, stack, size uint32
	block                                      uint32 // in queue.blocks
	at                                         uint32 // start of the event in the block
	capture, thread                            uint32 // in threadTable.all
	// The places of the ids of activities in the block; 0 if there are none. In version
	// 6, activity is the list of labels.
	activity, related uint32
	head              uint8 // size of the event header: 113 bytes at most
	sorted            bool
}

// pageSize is how many entries are allocated at once. Moving entries takes longer than
// making them, and in many streams few ever wait.
const pageSize = 128

// held is a block that events point into.
type held struct {
	b    []byte
	base int64 // offset of the block in the stream
}

// gap is a number of missing events. An entry with block noBlock refers to it with its
// at.
type gap struct{ count, since uint64 }

const noBlock = 1<<32 - 1

// place is the position of an event in the order.
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

// add adds an event with the given time. Its fields may hold anything.
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

// note adds a note that events of a thread are missing.
func (q *queue) note(t *Thread, n, time uint64) {
	*q.add(time) = entry{block: noBlock, at: uint32(len(q.lost)), thread: t.slot}
	q.lost = append(q.lost, gap{n, t.seen})
}

// release makes all events ready that are not newer than the given time.
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

// pop returns the next ready event and its time, or nil. The event is valid until
// something is added.
func (q *queue) pop() (e *entry, time uint64) {
	if q.next == q.ready {
		return nil, 0
	}
	p := q.order[q.next]
	q.next++
	return q.entry(p.index), p.time
}

// waiting returns the number of events that were not delivered.
func (q *queue) waiting() int { return len(q.order) - q.next }

// reset forgets delivered events if there are no others, and releases their blocks.
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

// compact forgets delivered events even though others wait, once they are most of what
// is held. In the streams of runtimes events are always waiting.
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

// maxPages is how many unused pages are kept.
const maxPages = 512

// How many events are delivered, or bytes of blocks held, before compact looks for what
// is no longer needed.
const (
	compactCount = 512
	compactSize  = 64 << 10
)

// sort sorts the waiting events: it merges runs of rising times, of which each thread
// writes one, pair by pair.
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

// merge merges a and b into to. If times are equal, those of a come first.
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
