// Package heapmap draws the picture of an address space: which memory a program
// has allocated, which it has freed, which the allocator got from the system
// and has not used, at any event of a trace (see package blocks for what an
// event is).
//
// A [Map] takes the records. [Map.Regions] are the parts of the address space
// in which something is, [Map.Paint] cuts one of them into cells.
//
// Memory is bounded by the blocks that are live at a time and a number of
// others: if there are more, those blocks are forgotten that lived between two
// neighbouring steps only, a step being 1, 2, 4 … events; that their memory was
// used is kept. The state after each step, at the peak, at an event asked for
// and at the end is exact nevertheless.
package heapmap

import (
	"rtrace-bpf/internal/analysis/blocks"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// Options of a Map.
type Options struct {
	// Limit is how many blocks are kept that are not live; 0 means 1<<19.
	Limit int
	// At is an event whose state must be exact, beside that at the peak.
	At uint64
	// Framer finds the places of calls. Its zero value takes what the trace has.
	Framer sites.Framer
}

// Block is a block in the time in which it was live.
type Block struct {
	Address, Size uint64 // bytes
	Born          uint64 // event that allocated it
	Died          uint64 // event that ended it; 0 if it is live at the end
	Thread        uint32 // index for [Map.Thread]
	Site          uint32 // index for [Map.Site]
}

// live says whether the block is there after an event.
func (b *Block) live(event uint64) bool { return b.Born <= event && (b.Died == 0 || event < b.Died) }

// Last is the address of the last byte. A block of 0 bytes has one all the
// same: it has an address of its own.
func (b *Block) Last() uint64 { return lastOf(b.Address, b.Size) }

func lastOf(address, size uint64) uint64 {
	last := address + max(size, 1) - 1
	if last < address {
		last = ^uint64(0)
	}
	return last
}

// Site is where blocks were allocated.
type Site struct {
	Function string // that allocated, as malloc
	Frame    sites.Frame
}

// Map is the picture in the making.
type Map struct {
	o        Options
	blocks   *blocks.Follower
	kept     store
	heap     spans // from the system
	internal spans
	freed    spans // of blocks that are forgotten
	sites    siteTable
	threads  threadTable
	step     uint64
	room     int    // how many blocks that ended there may be before the next thinning
	first    uint64 // events up to here were of another address space
	peak     Level
	now      uint64
}

// Level is how much is live after an event.
type Level struct {
	Event, Blocks, Bytes uint64
}

// maxSpans bounds each set of stretches: 6 MB.
const maxSpans = 1 << 18

// New returns an empty Map.
func New(o Options) *Map {
	if o.Limit <= 0 {
		o.Limit = 1 << 19
	}
	m := &Map{o: o, blocks: blocks.New(blocks.Memory)}
	m.clear()
	return m
}

func (m *Map) clear() {
	m.kept, m.step, m.room, m.peak = store{}, 1, m.o.Limit, Level{}
	m.heap, m.internal, m.freed = newSpans(maxSpans), newSpans(maxSpans), newSpans(maxSpans)
	m.threads = threadTable{ids: make(map[uint64]uint32)}
	m.sites = siteTable{framer: m.o.Framer, ids: make(map[Site]uint32)}
}

// Add takes a record. It keeps nothing that r refers to. Exec begins a new
// picture: the address space is another one.
func (m *Map) Add(r *trace.Record) {
	s := m.blocks.Add(r)
	switch r.Kind {
	case trace.KindHeapGrow:
		g := &r.HeapGrow
		if g.Internal {
			m.internal.add(g.Address, g.Size, m.now)
		} else {
			m.heap.add(g.Address, g.Size, m.now)
		}
		return
	case trace.KindExec:
		m.clear()
		m.first = m.now
		return
	case trace.KindCall:
	default:
		return
	}
	m.now = m.blocks.Event()
	if s.Ended {
		m.end(uint32(s.Old.Value))
	}
	if s.Begins {
		c := &r.Call
		n := m.kept.add(Block{Address: c.ID, Size: c.Size, Born: m.now, Thread: m.threads.add(blocks.Thread(r)), Site: m.sites.add(r)})
		if old, replaced := m.blocks.Begin(c, uint64(n)); replaced {
			m.end(uint32(old.Value))
		}
	}
	if n, bytes := m.blocks.Live(); bytes > m.peak.Bytes {
		m.peak = Level{m.now, n, bytes}
	}
}

// end notes that a block ended, and forgets it if nobody will see it.
func (m *Map) end(n uint32) {
	b := m.kept.at(n)
	b.Died = m.now
	m.kept.dead++
	if !m.visible(b) {
		m.forget(n)
		return
	}
	if m.kept.dead > m.room {
		m.thin()
	}
}

// visible says whether a block that ended is there after one of the events
// whose state is kept.
func (m *Map) visible(b *Block) bool {
	return (b.Died-1)/m.step*m.step >= b.Born || b.live(m.peak.Event) || b.live(m.o.At)
}

// forget drops a block that ended, all but that its memory was used.
func (m *Map) forget(n uint32) {
	b := m.kept.at(n)
	m.freed.add(b.Address, max(b.Size, 1), b.Died)
	m.kept.remove(n)
}

// thin makes room for blocks by steps that are larger. Those that were there at
// the peak stay; there may be many, but no more than were live at a time.
func (m *Map) thin() {
	for m.step <= m.now && m.kept.dead > m.o.Limit/4*3 {
		m.double()
	}
	m.room = max(m.o.Limit, 2*m.kept.dead)
}

// double doubles the step and forgets what cannot be seen any more.
func (m *Map) double() {
	m.step *= 2
	for n := range m.kept.size() {
		if b := m.kept.at(n); b.Born != 0 && b.Died != 0 && !m.visible(b) {
			m.forget(n)
		}
	}
}

// Events is the number of the last event.
func (m *Map) Events() uint64 { return m.now }

// First is the event after which the picture begins: 0, or the last one before
// the program was replaced.
func (m *Map) First() uint64 { return m.first }

// Step is how many events the states lie apart that are exact; between them
// some blocks are missing if it is not 1.
func (m *Map) Step() uint64 { return m.step }

// Peak is when most bytes were live: the first event after which they were.
func (m *Map) Peak() Level { return m.peak }

// Site returns where blocks with this Site were allocated.
func (m *Map) Site(n uint32) Site { return m.sites.all[n] }

// Thread returns the id of a thread (see blocks.Thread).
func (m *Map) Thread(n uint32) uint64 { return m.threads.all[n] }

// Threads is how many different ones there are.
func (m *Map) Threads() int { return len(m.threads.all) }

// Sites is how many different ones there are.
func (m *Map) Sites() int { return len(m.sites.all) }

// Heap returns the memory that the allocator got from the system, in order.
func (m *Map) Heap() []Span { return m.heap.list() }

// Internal returns the memory that what records the trace got.
func (m *Map) Internal() []Span { return m.internal.list() }

// Freed returns the memory of blocks that are forgotten; Since is when one was freed.
func (m *Map) Freed() []Span { return m.freed.list() }

// Coarsen doubles the step to make room, and says whether there is more to gain
// by it.
func (m *Map) Coarsen() bool {
	if m.step > m.now {
		return false
	}
	m.double()
	return true
}
