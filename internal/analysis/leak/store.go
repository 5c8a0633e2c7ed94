package leak

import (
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// store keeps the calls of one process. It contains no pointers per call: a
// call takes 64 bytes, and 24 more in traces with threads. Names and places, of
// which there are few, are stored as numbers. Calls are kept in chunks, of
// which only the first ever moves. The number of a call is reused after the
// call is removed.
type store struct {
	pid    int32
	chunks [][]kept
	wides  [][]wide // parallel to chunks; empty until a call needs it
	size   uint32   // numbers, in use or vacant
	n      uint32   // numbers in use
	vacant uint32   // 1 + the first vacant number; ordinal links to the next
	live   index    // calls of the live blocks

	names  sites.Names
	places sites.Table
	args   map[uint32][]trace.Arg // by number, for the few calls that have any

	// Above these numbers of names and words of places, shrink drops the unused
	// ones.
	maxNames, maxWords int

	recent [4]recent
	next   int
	frames []uint64 // of the last record
	texts  []string
}

// recent is a recently used name.
type recent struct {
	name string
	id   uint32
}

// kept is one call. It fills a cache line.
type kept struct {
	ordinal, seq uint64
	time         int64
	id, size     uint64
	resource     uint32
	context      uint32
	function     uint32
	place        uint32
	refs         uint32 // references to the block, less 1
	op           trace.Op
	args         bool
	unknown      bool // see Leaks.Unknown
}

// wide holds the fields of a call that only a few formats have.
type wide struct {
	index, thread uint64
	tid, cpu      int32
}

// maxRefs is the number of references that a block keeps for ever.
const maxRefs = 1<<32 - 1

// vacant is the op of a number that is not in use.
const vacant = trace.Op(255)

const (
	// The first chunk starts small, because each call may come from another
	// process.
	firstChunk = 8

	chunkBits = 12
	chunkSize = 1 << chunkBits

	// Up to these numbers of names and words are kept without a check for
	// unused ones.
	minNames = 1 << 14
	minWords = 1 << 18
)

func newStore() *store {
	return &store{args: make(map[uint32][]trace.Arg), maxNames: minNames, maxWords: minWords}
}

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

func (s *store) at(n uint32) *kept { return &s.chunks[n>>chunkBits][n&(chunkSize-1)] }

// add stores a call with the given operation and returns its number.
func (s *store) add(r *trace.Record, ordinal uint64, op trace.Op) uint32 {
	c := &r.Call
	if s.places.Words() > s.maxWords || s.names.Len() > s.maxNames {
		s.shrink()
	}
	function := s.function(c.Function)
	place := s.places.Add(&c.Stack, &c.Caller, &s.names)
	n := s.number()
	k := s.at(n) // field by field: a literal would be built first and then copied
	k.ordinal, k.seq, k.time, k.id, k.size = ordinal, c.Seq, r.Time, c.ID, c.Size
	k.resource, k.context, k.function, k.place = c.Resource, c.Context, function, place
	k.refs, k.op, k.args, k.unknown = 0, op, len(c.Args) > 0, false
	s.pid = r.PID
	if c.Index|c.Thread != 0 || r.TID|r.CPU != 0 || len(s.wides) > 0 {
		if i := n >> chunkBits; i >= uint32(len(s.wides)) || n&(chunkSize-1) >= uint32(len(s.wides[i])) {
			s.widen()
		}
		s.wides[n>>chunkBits][n&(chunkSize-1)] = wide{c.Index, c.Thread, r.TID, r.CPU}
	}
	if len(c.Args) > 0 {
		args := make([]trace.Arg, len(c.Args))
		for i, a := range c.Args {
			args[i] = trace.Arg{Name: s.names.Text(s.names.Add(a.Name)), Value: strings.Clone(a.Value)}
		}
		s.args[n] = args
	}
	return n
}

// number returns a vacant number or a new one.
func (s *store) number() uint32 {
	s.n++
	if s.vacant != 0 {
		n := s.vacant - 1
		s.vacant = uint32(s.at(n).ordinal)
		return n
	}
	n := s.size
	switch {
	case n == 0:
		s.chunks = [][]kept{make([]kept, firstChunk)}
	case n < chunkSize && n == uint32(len(s.chunks[0])):
		s.chunks[0] = append(s.chunks[0], make([]kept, n)...)
	case n>>chunkBits == uint32(len(s.chunks)):
		s.chunks = append(s.chunks, make([]kept, chunkSize))
	}
	s.size++
	return n
}

// widen extends wides to the length of chunks.
func (s *store) widen() {
	for i, c := range s.chunks {
		if i == len(s.wides) {
			s.wides = append(s.wides, make([]wide, len(c)))
		} else if n := len(c) - len(s.wides[i]); n > 0 {
			s.wides[i] = append(s.wides[i], make([]wide, n)...)
		}
	}
}

func (s *store) remove(n uint32) {
	k := s.at(n)
	if k.args {
		delete(s.args, n)
	}
	k.op, k.ordinal = vacant, uint64(s.vacant)
	s.vacant = n + 1
	s.n--
}

// function is names.Add with a cache of the last few names.
func (s *store) function(name string) uint32 {
	for i := range s.recent {
		if r := &s.recent[i]; r.name == name && r.id != 0 {
			return r.id
		}
	}
	id := s.names.Add(name)
	s.recent[s.next] = recent{s.names.Text(id), id}
	s.next = (s.next + 1) % len(s.recent)
	return id
}

func (s *store) record(n uint32, r *trace.Record) {
	k := s.at(n)
	r.Kind = trace.KindCall
	var w wide
	if len(s.wides) > 0 {
		w = s.wides[n>>chunkBits][n&(chunkSize-1)]
	}
	r.Time, r.PID, r.TID, r.CPU = k.time, s.pid, w.tid, w.cpu
	c := &r.Call
	c.Seq, c.Op, c.Function, c.Resource = k.seq, k.op, s.names.Text(k.function), k.resource
	c.ID, c.OldID, c.Size, c.EntryTime, c.Context = k.id, 0, k.size, 0, k.context
	c.Index, c.Thread = w.index, w.thread
	c.Args = nil
	if k.args {
		c.Args = s.args[n]
	}
	s.frames, s.texts = s.frames[:0], s.texts[:0]
	c.Stack, c.Caller = s.places.Place(k.place, &s.names, &s.frames, &s.texts)
}

// shrink drops the names and places that no call uses any more. It runs again
// when their number has doubled.
func (s *store) shrink() {
	oldPlaces, oldNames := s.places, s.names
	s.places, s.names = sites.Table{}, sites.Names{}
	s.recent = [len(s.recent)]recent{}
	moved := make(map[uint32]uint32)
	for n := range s.size {
		k := s.at(n)
		if k.op == vacant {
			continue
		}
		k.function = s.names.Add(oldNames.Text(k.function))
		to, ok := moved[k.place]
		if !ok {
			s.frames, s.texts = s.frames[:0], s.texts[:0]
			stack, caller := oldPlaces.Place(k.place, &oldNames, &s.frames, &s.texts)
			to = s.places.Add(&stack, &caller, &s.names)
			moved[k.place] = to
		}
		k.place = to
	}
	s.maxWords = max(minWords, 2*s.places.Words(), int(s.n))
	s.maxNames = max(minNames, 2*s.names.Len(), int(s.n/4))
}
