package record

import (
	"maps"
	"slices"
)

// Add adds the counts of another tracer, for another process.
func (s *Stats) Add(o *Stats) {
	s.Calls += o.Calls
	s.Allocs += o.Allocs
	s.Frees += o.Frees
	s.Moves += o.Moves
	s.LiveBlocks += o.LiveBlocks
	s.LiveBytes += o.LiveBytes
	s.UnknownBlocks += o.UnknownBlocks
	s.UnknownBytes += o.UnknownBytes
	s.Unmatched += o.Unmatched
	s.Replaced += o.Replaced
	for i := range o.Stacks {
		s.Stacks[i] += o.Stacks[i]
		s.FramePointer[i] += o.FramePointer[i]
	}
	broken := maps.Clone(s.Broken)
	if broken == nil {
		broken = map[string]uint64{}
	}
	for reason, n := range o.Broken {
		broken[reason] += n
	}
	s.Broken = broken
	s.DistinctStacks += o.DistinctStacks
	s.Work.Walks += o.Work.Walks
	s.Work.Searches += o.Work.Searches
	s.Work.Unchecked += o.Work.Unchecked
	s.Work.Compared += o.Work.Compared
	s.Work.Differ += o.Work.Differ
	s.Late += o.Late
	s.Verified += o.Verified
	s.VerifyDiffers += o.VerifyDiffers
	s.Forks += o.Forks
	s.Unprobed = s.Unprobed || o.Unprobed
	s.WasUnprobed = s.WasUnprobed || o.WasUnprobed
	s.LeftBehind = s.LeftBehind || o.LeftBehind
	for i := range o.Lost {
		s.Lost[i] += o.Lost[i]
	}
	s.Paused += o.Paused
	s.Resources = addResources(s.Resources, o.Resources)
}

// addResources returns the sums of all and more, by type of resource.
func addResources(all, more []ResourceCount) []ResourceCount {
	all = slices.Clone(all)
	for _, c := range more {
		at := slices.IndexFunc(all, func(x ResourceCount) bool { return x.Type == c.Type })
		if at < 0 {
			all = append(all, c)
			continue
		}
		all[at].Allocs += c.Allocs
		all[at].Frees += c.Frees
	}
	return all
}
