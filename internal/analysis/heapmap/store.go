package heapmap

import (
	"iter"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// store keeps blocks in chunks that never move, 40 bytes each. The number of a
// block is reused after the block is removed.
type store struct {
	chunks [][]Block
	n      uint32 // numbers in use or vacant
	dead   int    // ended blocks
	vacant uint32 // 1 + the first vacant number; the next one is in Site
}

const (
	chunkBits = 12
	chunkSize = 1 << chunkBits
)

func (s *store) at(n uint32) *Block { return &s.chunks[n>>chunkBits][n&(chunkSize-1)] }

// size returns the highest number plus 1. Vacant blocks have Born 0.
func (s *store) size() uint32 { return s.n }

func (s *store) add(b Block) uint32 {
	n := s.n
	if s.vacant != 0 {
		n = s.vacant - 1
		s.vacant = s.at(n).Site
	} else {
		if n>>chunkBits == uint32(len(s.chunks)) {
			s.chunks = append(s.chunks, make([]Block, chunkSize))
		}
		s.n++
	}
	*s.at(n) = b
	return n
}

// remove makes the number of an ended block vacant.
func (s *store) remove(n uint32) {
	*s.at(n) = Block{Site: s.vacant}
	s.vacant = n + 1
	s.dead--
}

// Len returns the number of blocks that are kept.
func (m *Map) Len() int {
	n, _ := m.blocks.Live()
	return int(n) + m.kept.dead
}

// Unknown returns the number of blocks that are drawn as live to the end but
// may have been freed during a gap in the recording.
func (m *Map) Unknown() uint64 {
	n, _ := m.blocks.Unknown()
	return n
}

// Blocks yields the kept blocks in no particular order. The caller must not
// change them.
func (m *Map) Blocks() iter.Seq[*Block] {
	return func(yield func(*Block) bool) {
		for n := range m.kept.size() {
			if b := m.kept.at(n); b.Born != 0 && !yield(b) {
				return
			}
		}
	}
}

// siteTable numbers the places of calls.
type siteTable struct {
	framer   sites.Framer
	ids      map[Site]uint32
	all      []Site
	frames   []sites.Frame
	last     Site
	lastSite uint32 // 1 + number of last
}

// maxSites bounds the table. All further sites share one number, whose Site is
// empty.
const maxSites = 1 << 17

func (t *siteTable) add(r *trace.Record) uint32 {
	c := &r.Call
	t.frames = t.framer.Append(t.frames[:0], r.PID, &c.Stack, &c.Caller, 1)
	s := Site{Function: c.Function}
	if len(t.frames) > 0 {
		s.Frame = t.frames[0]
	}
	if t.lastSite != 0 && t.last == s {
		return t.lastSite - 1
	}
	n, ok := t.ids[s]
	if !ok {
		n = t.insert(s)
	}
	t.last, t.lastSite = t.all[n], n+1
	return n
}

func (t *siteTable) insert(s Site) uint32 {
	if len(t.all) > maxSites {
		return maxSites
	}
	if len(t.all) == maxSites {
		s = Site{}
	}
	s.Function = strings.Clone(s.Function)
	p := &s.Frame.Place
	p.Function, p.File, p.Module = strings.Clone(p.Function), strings.Clone(p.File), strings.Clone(p.Module)
	n := uint32(len(t.all))
	t.all = append(t.all, s)
	t.ids[s] = n
	return n
}

// threadTable numbers threads.
type threadTable struct {
	ids  map[uint64]uint32
	all  []uint64
	last uint32 // 1 + number of the last call's thread
}

func (t *threadTable) add(id uint64) uint32 {
	if t.last != 0 && t.all[t.last-1] == id {
		return t.last - 1
	}
	n, ok := t.ids[id]
	if !ok {
		n = uint32(len(t.all))
		t.all = append(t.all, id)
		t.ids[id] = n
	}
	t.last = n + 1
	return n
}
