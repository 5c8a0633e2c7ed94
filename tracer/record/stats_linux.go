package record

import (
	"maps"
	"slices"
	"time"

	"rtrace-bpf/tracer/order"
)

// Stats counts what a tracer has recorded so far.
type Stats struct {
	Calls, Allocs, Frees, Moves uint64
	Resources                   []ResourceCount // of the resource modules
	LiveBlocks                  int
	LiveBytes                   uint64
	UnknownBlocks               int // live when a gap began; not in LiveBlocks
	UnknownBytes                uint64
	Unmatched                   uint64            // frees of blocks whose allocation was not seen
	Replaced                    uint64            // allocations at an address that still counted as live
	Stacks                      [5]uint64         // calls with a stack, by trace.StackEnd
	FramePointer                [5]uint64         // calls with a frame-pointer step in their stack, by trace.StackEnd
	Broken                      map[string]uint64 // failed stacks, by reason
	DistinctStacks              int
	Work                        order.Work
	Late                        uint64                  // stacks through code without a table yet, unwound from copies
	Verified, VerifyDiffers     uint64                  // stacks that the Go unwinder checked, and those of them that differ
	Forks                       uint64                  // child processes that the process made
	Unprobed                    bool                    // since an exec the process uses an allocator without probes, whose calls are missing
	WasUnprobed                 bool                    // that was so between two execs
	LeftBehind                  bool                    // no probe fires since a thread other than the main one called exec
	Lost                        [order.LossCount]uint64 // by order.Loss
	Paused                      time.Duration           // total time of the pauses for MaxRate
}

// LostEvents returns the number of events that are missing as a whole.
func (s *Stats) LostEvents() uint64 {
	var n uint64
	for reason, lost := range s.Lost {
		if order.Loss(reason).Incomplete() {
			n += lost
		}
	}
	return n
}

// MissesPrograms reports whether all calls of a program are missing, of the current one
// or one before.
func (s *Stats) MissesPrograms() bool { return s.Unprobed || s.WasUnprobed || s.LeftBehind }

// Losses returns the number of losses, for any reason.
func (s *Stats) Losses() uint64 {
	var n uint64
	for _, lost := range s.Lost {
		n += lost
	}
	return n
}

// clone returns a copy that shares nothing with s.
func (s *Stats) clone() Stats {
	all := *s
	all.Broken = maps.Clone(all.Broken)
	all.Resources = slices.Clone(all.Resources)
	return all
}
