package aggregate

import (
	"strings"
	"time"

	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Memory is the resource type of memory blocks and of calls of undeclared
// resources.
const Memory = "memory"

// Resident is the resource type of resident memory, whose blocks are pages.
const Resident = "resident"

// Resource is the sums of a type of resource.
type Resource struct {
	Type, Desc string
	// Sampled reports that the trace has only some of the allocations and no
	// frees. They count as live.
	Sampled   bool
	Total     usage.Usage
	Freed     live.Amount // by a free or a realloc
	Replaced  live.Amount // ended because another block began at their address
	Unmatched uint64      // frees of blocks that were not live
	Calls     usage.Calls
	Change    Change // in the last interval
	Doubt     Doubt
}

// InMemory reports whether the blocks are memory: of allocators, or resident
// pages.
func (r *Resource) InMemory() bool { return r.Type == Memory || r.Type == Resident }

// Judged reports whether the call sites of the resource have verdicts: all its
// calls are recorded, and there are frees among them. Pages that go are always seen.
func (r *Resource) Judged() bool {
	return !r.Sampled && (r.Type == Resident || r.Calls.Frees+r.Calls.Reallocs > 0)
}

// Change is what happened in an interval.
type Change struct {
	Allocated live.Amount
	Freed     live.Amount // by a free or a realloc
}

// Doubt is the figures that show whether live blocks may be freed soon, and why
// they may be. Other doubts are in [State].
type Doubt struct {
	live.Young
	Reason live.Doubt
}

// resource is a Resource in progress.
type resource struct {
	Resource
	number int
	sites  int
	sums   usage.Ledger
	lives  live.Lifetimes
	before Change // at the start of the current interval
	// earlier holds the frees of blocks from before the recording.
	earlier trend.History
}

// resources holds the types of resources.
type resources struct {
	all    []*resource
	byID   map[uint32]int
	id     uint32 // of the last call
	last   int    // 1 + the index for id; 0 if there is none
	others uint64 // calls of other resources
}

// Limits of resources. Calls of further types are only counted, and those of
// undeclared ones are memory.
const (
	maxResources = 64
	maxIDs       = 1 << 16
)

// declare processes the declaration of a resource.
func (s *resources) declare(r *trace.Resource) {
	n := s.ofType(r.Type)
	s.set(r.ID, n)
	if n >= 0 {
		of := s.all[n]
		of.Desc = strings.Clone(r.Desc)
		of.Sampled = of.Sampled || r.Sampled
	}
}

// of returns the index of the type of a resource, or -1 if there are too many
// types.
func (s *resources) of(id uint32) int {
	if s.last > 0 && s.id == id {
		return s.last - 1
	}
	n, ok := s.byID[id]
	if !ok {
		n = s.ofType(Memory)
		s.set(id, n)
	}
	s.id, s.last = id, n+1
	return n
}

func (s *resources) set(id uint32, n int) {
	if s.byID == nil {
		s.byID = make(map[uint32]int)
	}
	if _, known := s.byID[id]; known || len(s.byID) < maxIDs {
		s.byID[id] = n
	}
	s.last = 0
}

func (s *resources) ofType(name string) int {
	for n, of := range s.all {
		if of.Type == name {
			return n
		}
	}
	if len(s.all) == maxResources {
		return -1
	}
	s.all = append(s.all, &resource{Resource: Resource{Type: strings.Clone(name)}, number: len(s.all)})
	return len(s.all) - 1
}

// doubt returns the figures about live blocks, of which young ones are younger
// than usual. gaps reports that frees may be missing.
func (of *resource) doubt(recorded int64, young uint64, gaps bool) Doubt {
	if of.Sampled || of.Calls.Frees == 0 {
		return Doubt{}
	}
	d := Doubt{Young: live.Young{
		Recorded: time.Duration(recorded), Usual: of.lives.Usual(), Live: of.sums.Total().Live.Blocks, Young: young,
	}}
	if !gaps {
		d.Before = of.Unmatched
	}
	d.Reason = d.Judge()
	return d
}
