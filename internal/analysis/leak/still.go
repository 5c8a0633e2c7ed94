package leak

import (
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// still is the state of a Finder from NewStill, which keeps the blocks that are
// still live, or unknown because of a gap, by the rules of live.Blocks.
type still struct {
	blocks  *live.Blocks // Value is the number of the call in the store
	sampled live.IDs     // resources of which the trace has only some of the allocations
	lives   live.Lifetimes
}

// NewStill returns a Finder of the calls whose blocks are live or unknown at
// the end. It does not keep calls that neither allocate nor free.
func NewStill() *Finder {
	f := New()
	f.still = &still{blocks: live.NewBlocks()}
	return f
}

// Replaced returns the number and total bytes of the live blocks that ended
// because another one began at their address. The Finder must be from
// [NewStill] or [NewFed].
func (f *Finder) Replaced() (blocks, bytes uint64) {
	if f.fed != nil {
		all := f.fed.replaced()
		return all.Blocks, all.Bytes
	}
	return f.still.blocks.Replaced()
}

// Lifetimes returns the lifetimes of the freed blocks, counted from the call
// that made them, which may be a realloc. In a trace without times all are 0.
// The Finder must be from [NewStill] or [NewFed].
func (f *Finder) Lifetimes() *live.Lifetimes {
	if f.fed != nil {
		return &f.fed.lives
	}
	return &f.still.lives
}

func (f *Finder) addStill(r *trace.Record) {
	s, c := f.still, &r.Call
	switch r.Kind {
	case trace.KindResource:
		s.blocks.Declare(&r.Resource)
		s.sampled.Set(r.Resource.ID, r.Resource.Sampled)
	case trace.KindExec:
		f.calls.Drop(r.PID)
		s.blocks.Exec(r.PID)
	case trace.KindLost:
		s.blocks.Lost(r, nil)
	case trace.KindCall:
		f.ordinal++
		switch {
		case c.Op == trace.OpFree:
			f.freeStill(r, c.ID)
		case c.Op == trace.OpMove && c.OldID != 0:
			f.freeStill(r, c.OldID)
			fallthrough
		case c.Op == trace.OpAlloc || c.Op == trace.OpMove:
			f.allocStill(r)
		}
	}
}

func (f *Finder) allocStill(r *trace.Record) {
	s, c := f.still, &r.Call
	if s.blocks.Retain(r.PID, c.Resource, c.ID) {
		return
	}
	calls := f.calls.Of(r.PID)
	n := calls.add(r, f.ordinal, trace.OpAlloc)
	if s.sampled.Has(c.Resource) {
		return
	}
	if old, fate := s.blocks.Insert(r.PID, c.Resource, c.ID, c.Size, uint64(n)); fate != live.Absent {
		calls.remove(uint32(old.Value))
	}
}

func (f *Finder) freeStill(r *trace.Record, id uint64) {
	s := f.still
	old, fate := s.blocks.Free(r.PID, r.Call.Resource, id)
	if fate == live.Absent {
		return
	}
	calls, n := f.calls.Of(r.PID), uint32(old.Value)
	if fate == live.Known { // an unknown block may not be the one that was freed
		s.lives.Ended(r.Time - calls.at(n).time)
	}
	calls.remove(n)
}

// markUnknown records in each kept call whether its block is unknown.
func (f *Finder) markUnknown() {
	for pid, blocks := range f.still.blocks.All() {
		calls := f.calls.Of(pid)
		for e, fate := range blocks {
			calls.at(uint32(e.Value)).unknown = fate == live.Unknown
		}
	}
}
