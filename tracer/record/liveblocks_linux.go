package record

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
)

// liveBlocks holds what is known of the allocators' blocks.
type liveBlocks struct {
	pid    int32
	blocks *live.Blocks      // nil if live blocks are not tracked; Value is the ID of the stack
	early  map[uint64]uint64 // sizes of the blocks that kindFreeEarly freed
	stats  *Stats
}

// begin begins a live block; stack is the ID of its stack.
func (l *liveBlocks) begin(e *order.Event, stack uint64) {
	if l.blocks == nil {
		return
	}
	if _, fate := l.blocks.Insert(l.pid, MemoryResource, e.Addr, e.Size, stack); fate == live.Known {
		l.stats.Replaced++
	}
}

// end ends a live block. It reports whether the block was live, and true if live blocks are
// not tracked.
func (l *liveBlocks) end(addr uint64) bool {
	if l.blocks == nil {
		return true
	}
	_, fate := l.blocks.Free(l.pid, MemoryResource, addr)
	return fate != live.Absent
}

// keepSize keeps the size of a live block that is about to be freed early.
func (l *liveBlocks) keepSize(addr uint64) {
	if l.blocks == nil {
		return
	}
	if b, fate := l.blocks.Get(l.pid, MemoryResource, addr); fate != live.Absent {
		l.early[addr] = b.Size
	}
}

// keptSize returns the size that keepSize kept, and forgets it. known is false if the block
// was not live, and true, with size 0, if live blocks are not tracked.
func (l *liveBlocks) keptSize(addr uint64) (size uint64, known bool) {
	size, known = l.early[addr]
	delete(l.early, addr)
	return size, known || l.blocks == nil
}

// lost notes that nothing was recorded in the time that r, the record of a gap, describes.
func (l *liveBlocks) lost(r *trace.Record) {
	if l.blocks != nil {
		l.blocks.Lost(r, nil)
	}
}

// clear forgets all blocks, because the process has replaced its program.
func (l *liveBlocks) clear() {
	if l.blocks != nil {
		l.blocks = live.NewBlocks()
	}
	clear(l.early)
}

// count adds the counts of live and unknown blocks to s.
func (l *liveBlocks) count(s *Stats) {
	if l.blocks != nil {
		s.LiveBlocks, s.LiveBytes = l.blocks.Live()
		s.UnknownBlocks, s.UnknownBytes = l.blocks.Unknown()
	}
}

// LiveSite is a stack with its live blocks.
type LiveSite struct {
	Frames []uint64 // return addresses, innermost first; nil if no stack was recorded
	Blocks int
	Bytes  uint64
}

// sites is Stream.LiveSites. defs has the definitions of stacks by ID.
func (l *liveBlocks) sites(n int, defs map[uint64]*order.StackDef) []LiveSite {
	if l.blocks == nil {
		return nil
	}
	byStack := map[uint64]*LiveSite{}
	for _, blocks := range l.blocks.All() {
		for b, fate := range blocks {
			if fate != live.Known {
				continue
			}
			site := byStack[b.Value]
			if site == nil {
				site = &LiveSite{}
				if def := defs[b.Value]; def != nil {
					site.Frames = def.Frames
				}
				byStack[b.Value] = site
			}
			site.Blocks++
			site.Bytes += b.Size
		}
	}
	all := make([]LiveSite, 0, len(byStack))
	for _, site := range byStack {
		all = append(all, *site)
	}
	slices.SortFunc(all, func(a, b LiveSite) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Blocks, a.Blocks), slices.Compare(a.Frames, b.Frames))
	})
	return all[:min(n, len(all))]
}

// bytes is Stream.LiveBytes.
func (l *liveBlocks) bytes() uint64 {
	if l.blocks == nil {
		return 0
	}
	_, bytes := l.blocks.Live()
	return bytes
}
