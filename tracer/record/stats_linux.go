package record

import (
	"maps"
	"slices"
	"time"

	"rtrace-bpf/tracer/order"
)

// Stats counts what a tracer has seen so far.
type Stats struct {
	Calls, Allocs, Frees, Moves uint64
	Resources                   []ResourceCount // of the modules
	LiveBlocks                  int
	LiveBytes                   uint64
	UnknownBlocks               int // live when nothing was recorded for a while, not in LiveBlocks
	UnknownBytes                uint64
	Unmatched                   uint64            // frees of blocks whose allocation was not seen
	Replaced                    uint64            // allocations at an address that still counted as live
	Stacks                      [5]uint64         // calls with a stack, by trace.StackEnd
	FramePointer                [5]uint64         // of these, with a frame-pointer step
	Broken                      map[string]uint64 // failed stacks, by reason
	DistinctStacks              int
	Work                        order.Work
	Late                        uint64                  // stacks through code too new for the programs, unwound from copies
	Verified, VerifyDiffers     uint64                  // stacks checked by the Go unwinder, and those it found different
	Forks                       uint64                  // processes that the process made
	Unprobed                    bool                    // since an exec the process uses another allocator, whose calls are missing
	WasUnprobed                 bool                    // it did so between two execs
	LeftBehind                  bool                    // since an exec by another thread than the main one no probe fires
	Lost                        [order.LossCount]uint64 // by Loss
	Paused                      time.Duration           // how long nothing was recorded, for MaxRate
}

// LostEvents is how many events are missing as a whole.
func (s *Stats) LostEvents() uint64 {
	var n uint64
	for reason, lost := range s.Lost {
		if order.Loss(reason).Incomplete() {
			n += lost
		}
	}
	return n
}

// MissesPrograms says whether the process was or is a program whose calls are
// missing as a whole.
func (s *Stats) MissesPrograms() bool { return s.Unprobed || s.WasUnprobed || s.LeftBehind }

// Losses is how much is missing or doubtful, for any reason.
func (s *Stats) Losses() uint64 {
	var n uint64
	for _, lost := range s.Lost {
		n += lost
	}
	return n
}

// Summary returns what was passed on so far. The caller owns it.
func (s *Stream) Summary() Stats {
	all := s.Stats
	all.Broken = maps.Clone(all.Broken)
	if s.noMemory {
		all.Unprobed, all.WasUnprobed = false, false // no allocator is
	}
	all.Resources = slices.Clone(s.Resources.counts)
	all.DistinctStacks = len(s.checked)
	if v := s.verifier; v != nil {
		all.Verified, all.VerifyDiffers = v.checked, v.differs
	}
	if s.blocks != nil {
		all.LiveBlocks, all.LiveBytes = s.blocks.Live()
		all.UnknownBlocks, all.UnknownBytes = s.blocks.Unknown()
	}
	return all
}
