package record

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/live"
)

// LiveSite is a stack with its live blocks.
type LiveSite struct {
	Frames []uint64 // return addresses, innermost first; nil if no stack was recorded
	Blocks int
	Bytes  uint64
}

// LiveSites returns the n stacks with the most live bytes, in descending order. Unknown
// blocks do not count.
func (s *Stream) LiveSites(n int) []LiveSite {
	if s.blocks == nil {
		return nil
	}
	byStack := map[uint64]*LiveSite{}
	for _, blocks := range s.blocks.All() {
		for b, fate := range blocks {
			if fate != live.Known {
				continue
			}
			site := byStack[b.Value]
			if site == nil {
				site = &LiveSite{}
				if def := s.checked[b.Value]; def != nil {
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

// LiveBytes returns the number of live bytes, without those of unknown blocks. It returns
// 0 if live blocks are not tracked.
func (s *Stream) LiveBytes() uint64 {
	if s.blocks == nil {
		return 0
	}
	_, bytes := s.blocks.Live()
	return bytes
}
