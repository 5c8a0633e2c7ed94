package leak

import (
	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// fed is the state of a Finder from NewFed. It keeps the calls whose blocks are live or unknown
// in an engine, which it feeds.
type fed struct {
	finder   *Finder
	engine   *aggregate.Engine
	resource func() string // type
	calls    *store        // by the numbers of the engine's blocks
	lives    live.Lifetimes
}

// NewFed returns a Finder like that of [NewStill] that feeds an Engine with the records it
// takes, and whose blocks are those of the Engine: both together need one table of live
// blocks. Calls must be of one type of resource, which resource returns when a
// resource is declared.
func NewFed(e *aggregate.Engine, resource func() string) *Finder {
	f := New()
	f.fed = &fed{finder: f, engine: e, resource: resource, calls: newStore()}
	f.fed.calls.sites = e
	e.Keep(f.fed)
	return f
}

// add processes a record.
func (s *fed) add(r *trace.Record) {
	switch r.Kind {
	case trace.KindCall:
		s.finder.ordinal++
	case trace.KindExec:
		s.finder.calls.Drop(r.PID)
	case trace.KindResource:
		if r.Resource.Type != s.resource() {
			return // an engine follows only some types
		}
	}
	s.engine.Add(r)
}

// Began implements aggregate.Keeper.
func (s *fed) Began(block uint64, site int, r *trace.Record) {
	s.calls.put(uint32(block), r, s.finder.ordinal, site)
}

// Ended implements aggregate.Keeper.
func (s *fed) Ended(block uint64, r *trace.Record) {
	if r != nil {
		s.lives.Ended(r.Time - s.calls.at(uint32(block)).time)
	}
	s.calls.empty(uint32(block))
}

// Sampled implements aggregate.Keeper.
func (s *fed) Sampled(r *trace.Record) {
	s.finder.calls.Of(r.PID).add(r, s.finder.ordinal, trace.OpAlloc)
}

// markUnknown records in each kept call whether its block is unknown.
func (s *fed) markUnknown() {
	for n := range uint32(s.calls.kept.Len()) {
		if k := s.calls.at(n); k.ordinal != 0 {
			k.unknown = s.engine.Unknown(uint64(n))
		}
	}
}

// live returns the number of live blocks.
func (s *fed) live() (blocks int) {
	s.markUnknown()
	for k := range s.calls.kept.All() {
		if k.ordinal != 0 && !k.unknown {
			blocks++
		}
	}
	return blocks
}

// unmatched returns the number of frees of blocks that were neither live nor unknown.
func (s *fed) unmatched() (frees uint64) {
	for _, of := range s.engine.State().Resources {
		frees += of.Unmatched
	}
	return frees
}

// replaced returns the live blocks that ended because another one began at their address.
func (s *fed) replaced() (all live.Amount) {
	for _, of := range s.engine.State().Resources {
		all.Add(of.Replaced)
	}
	return all
}
