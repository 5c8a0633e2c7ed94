package leak

import (
	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// store keeps the calls of one process. It contains no pointers per call: a
// call takes 64 bytes, and 24 more in traces with threads. Names and places, of
// which there are few, are stored as numbers. The number of a call is reused
// after the call is removed.
type store struct {
	pid   int32
	kept  live.Values[kept]
	wides live.Values[wide]      // by the same numbers; empty until a call needs it
	args  map[uint32][]trace.Arg // by number, for the few calls that have any
	live  index                  // calls of the live blocks
	words dictionary
	// sites knows the places: kept.place is the number of a call site. If it is
	// nil, words does.
	sites *aggregate.Engine
}

// kept is one call. It fills a cache line.
type kept struct {
	ordinal  uint64 // from 1; 0 marks a number that is not in use
	seq      uint64
	time     int64
	id, size uint64
	resource uint32
	context  uint32
	function uint32
	place    uint32
	refs     uint32 // references to the block, less 1
	op       trace.Op
	args     bool
	unknown  bool // see Leaks.Unknown
}

// wide holds the fields of a call that only a few formats have.
type wide struct {
	index, thread uint64
	tid, cpu      int32
}

// maxRefs is the number of references that a block keeps for ever.
const maxRefs = 1<<32 - 1

func newStore() *store {
	return &store{args: make(map[uint32][]trace.Arg), words: newDictionary()}
}

// used returns the number of calls.
func (s *store) used() (n int) {
	for k := range s.kept.All() {
		if k.ordinal != 0 {
			n++
		}
	}
	return n
}

func (s *store) at(n uint32) *kept { return s.kept.At(uint64(n)) }

// retain adds a reference to the block of a call.
func (s *store) retain(n uint32) {
	if k := s.at(n); k.refs != maxRefs {
		k.refs++
	}
}

// release removes a reference. It returns false if there was only one.
func (s *store) release(n uint32) bool {
	k := s.at(n)
	if k.refs != 0 && k.refs != maxRefs {
		k.refs--
		return true
	}
	return k.refs == maxRefs
}

// add stores a call with the given operation and returns its number.
func (s *store) add(r *trace.Record, ordinal uint64, op trace.Op) uint32 {
	if s.words.full() {
		s.shrink()
	}
	place := s.words.place(&r.Call.Stack, &r.Call.Caller)
	n, _ := s.kept.New()
	s.pid = r.PID
	s.set(uint32(n), r, ordinal, op, place)
	return uint32(n)
}

// put stores an allocation at a call site of the engine under a number that the engine has
// chosen.
func (s *store) put(n uint32, r *trace.Record, ordinal uint64, site int) {
	if s.words.full() {
		s.shrink()
	}
	for s.kept.Len() <= int(n) {
		s.kept.New()
	}
	s.set(n, r, ordinal, trace.OpAlloc, uint32(site))
}

// set stores a call under a number.
func (s *store) set(n uint32, r *trace.Record, ordinal uint64, op trace.Op, place uint32) {
	c := &r.Call
	k := s.at(n) // field by field: a literal would be built first and then copied
	k.ordinal, k.seq, k.time, k.id, k.size = ordinal, c.Seq, r.Time, c.ID, c.Size
	k.resource, k.context, k.function, k.place = c.Resource, c.Context, s.words.function(c.Function), place
	k.op, k.args = op, len(c.Args) > 0
	if c.Index|c.Thread != 0 || r.TID|r.CPU != 0 || s.wides.Len() > 0 {
		for s.wides.Len() < s.kept.Len() {
			s.wides.New()
		}
		*s.wides.At(uint64(n)) = wide{c.Index, c.Thread, r.TID, r.CPU}
	}
	if k.args {
		s.args[n] = s.words.args(c.Args)
	}
}

// remove removes a call. Its number is reused.
func (s *store) remove(n uint32) {
	s.empty(n)
	s.kept.Drop(uint64(n))
}

// empty removes a call whose number the engine reuses.
func (s *store) empty(n uint32) {
	k := s.at(n)
	if k.args {
		delete(s.args, n)
	}
	*k = kept{}
}

func (s *store) record(n uint32, r *trace.Record) {
	k := s.at(n)
	r.Kind = trace.KindCall
	var w wide
	if s.wides.Len() > 0 {
		w = *s.wides.At(uint64(n))
	}
	r.Time, r.PID, r.TID, r.CPU = k.time, s.pid, w.tid, w.cpu
	c := &r.Call
	c.Seq, c.Op, c.Function, c.Resource = k.seq, k.op, s.words.names.Text(k.function), k.resource
	c.ID, c.OldID, c.Size, c.EntryTime, c.Context = k.id, 0, k.size, 0, k.context
	c.Index, c.Thread = w.index, w.thread
	c.Args = nil
	if k.args {
		c.Args = s.args[n]
	}
	if s.sites != nil {
		s.words.frames, s.words.texts = s.words.frames[:0], s.words.texts[:0]
		s.sites.PlaceIn(int(k.place), r, &s.words.frames, &s.words.texts)
		return
	}
	c.Stack, c.Caller = s.words.placeOf(k.place)
}

// shrink drops the names and places that no call uses any more. It runs again
// when their number has doubled.
func (s *store) shrink() {
	old := s.words
	s.words = newDictionary()
	moved := make(map[uint32]uint32)
	used := 0
	for k := range s.kept.All() {
		if k.ordinal == 0 {
			continue
		}
		used++
		k.function = s.words.names.Add(old.names.Text(k.function))
		if s.sites != nil {
			continue
		}
		to, ok := moved[k.place]
		if !ok {
			stack, caller := old.placeOf(k.place)
			to = s.words.place(&stack, &caller)
			moved[k.place] = to
		}
		k.place = to
	}
	s.words.raise(used)
}
