// Package heapmap draws the address space of a program at any event of a trace.
// The picture shows which memory the program has allocated, which it has freed,
// and which the allocator got from the system but has not used. Package blocks
// defines what an event is.
//
// A [Map] processes the records. [Map.Regions] returns the used parts of the
// address space, [Map.Paint] divides one of them into cells.
//
// Memory is bounded by the blocks that are live at a time plus a fixed number
// of ended ones. If there are more, the Map drops the blocks that lived only
// between two neighbouring steps, a step being 1, 2, 4 … events; it still
// records that their memory was used. The state after each step, at the peak,
// at the event in [Options.At] and at the end is always exact.
package heapmap

import (
	"rtrace-bpf/internal/analysis/blocks"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// Options configure a Map.
type Options struct {
	// Limit is the number of ended blocks to keep; 0 means 1<<19.
	Limit int
	// At is an event whose state must be exact, in addition to the peak.
	At uint64
	// Framer finds the places of calls. The zero value uses the names in the
	// trace.
	Framer sites.Framer
}

// Block is a block and its lifetime.
type Block struct {
	Address, Size uint64 // bytes
	Born          uint64 // event that allocated it
	Died          uint64 // event that ended it; 0 if it is live at the end
	Thread        uint32 // index for [Map.Thread]
	Site          uint32 // index for [Map.Site]
}

// live reports whether the block is live after an event.
func (b *Block) live(event uint64) bool { return b.Born <= event && (b.Died == 0 || event < b.Died) }

// Last returns the address of the last byte. A block of 0 bytes counts as one
// byte, because it has its own address.
func (b *Block) Last() uint64 { return lastOf(b.Address, b.Size) }

func lastOf(address, size uint64) uint64 {
	last := address + max(size, 1) - 1
	if last < address {
		last = ^uint64(0)
	}
	return last
}

// Site is a place where blocks were allocated.
type Site struct {
	Function string // the allocator's, such as malloc
	Frame    sites.Frame
}

// Map collects the blocks of a trace and paints them.
type Map struct {
	o        Options
	blocks   *blocks.Follower
	kept     store
	heap     spans // memory from the system
	internal spans
	freed    spans // memory of dropped blocks
	sites    siteTable
	threads  threadTable
	step     uint64
	room     int    // ended blocks that are kept before the next thinning
	first    uint64 // events up to here belong to a previous address space
	peak     Level
	now      uint64
}

// Level is the amount that is live after an event.
type Level struct {
	Event, Blocks, Bytes uint64
}

// maxSpans bounds each set of spans, to 6 MB.
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

// Add processes a record. It keeps no reference to the contents of r. An Exec
// starts a new picture, because the address space is a new one.
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
		n := m.kept.add(Block{Address: c.ID, Size: c.Size, Born: m.now, Thread: m.threads.add(blocks.ThreadID(r)), Site: m.sites.add(r)})
		if old, replaced := m.blocks.Begin(c, uint64(n)); replaced {
			m.end(uint32(old.Value))
		}
	}
	if n, bytes := m.blocks.Live(); bytes > m.peak.Bytes {
		m.peak = Level{m.now, n, bytes}
	}
}

// end records that a block ended, and drops it if it is not visible.
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

// visible reports whether an ended block was live after one of the events whose
// state is kept.
func (m *Map) visible(b *Block) bool {
	return (b.Died-1)/m.step*m.step >= b.Born || b.live(m.peak.Event) || b.live(m.o.At)
}

// forget drops an ended block and records only that its memory was used.
func (m *Map) forget(n uint32) {
	b := m.kept.at(n)
	m.freed.add(b.Address, max(b.Size, 1), b.Died)
	m.kept.remove(n)
}

// thin makes room by increasing the step. The blocks that were live at the peak
// stay. They may be many, but no more than were live at a time.
func (m *Map) thin() {
	for m.step <= m.now && m.kept.dead > m.o.Limit/4*3 {
		m.double()
	}
	m.room = max(m.o.Limit, 2*m.kept.dead)
}

// double doubles the step and drops the blocks that are no longer visible.
func (m *Map) double() {
	m.step *= 2
	for n := range m.kept.size() {
		if b := m.kept.at(n); b.Born != 0 && b.Died != 0 && !m.visible(b) {
			m.forget(n)
		}
	}
}

// Events returns the number of the last event.
func (m *Map) Events() uint64 { return m.now }

// First returns the event after which the picture begins: 0, or the last event
// before the latest exec.
func (m *Map) First() uint64 { return m.first }

// Step returns the distance between events whose states are exact. If it is not
// 1, the states between them lack some blocks.
func (m *Map) Step() uint64 { return m.step }

// Peak returns the first event after which the most bytes were live.
func (m *Map) Peak() Level { return m.peak }

// Site returns the site with the given number, as in Block.Site.
func (m *Map) Site(n uint32) Site { return m.sites.all[n] }

// Thread returns the id of the thread with the given number, as in Block.Thread
// (see [blocks.Thread]).
func (m *Map) Thread(n uint32) uint64 { return m.threads.all[n] }

// Threads returns the number of different threads.
func (m *Map) Threads() int { return len(m.threads.all) }

// Sites returns the number of different sites.
func (m *Map) Sites() int { return len(m.sites.all) }

// Heap returns the memory that the allocator got from the system, in order.
func (m *Map) Heap() []Span { return m.heap.list() }

// Internal returns the memory that the recorder of the trace got from the
// system.
func (m *Map) Internal() []Span { return m.internal.list() }

// Freed returns the memory of dropped blocks; Since is the earliest event that
// freed a block there.
func (m *Map) Freed() []Span { return m.freed.list() }

// Coarsen doubles the step to make room. It returns false if that cannot save
// any more.
func (m *Map) Coarsen() bool {
	if m.step > m.now {
		return false
	}
	m.double()
	return true
}
