package leak

import (
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// store keeps the calls of one process without pointers: 64 bytes a call, and 24
// more in traces that tell threads apart, in chunks, of which only the first ever
// moves, with names and places, of which there are few, as numbers. A number is
// reused once its call is removed.
type store struct {
	pid    int32
	chunks [][]kept
	wides  [][]wide // as chunks; empty while no call has anything there
	size   uint32   // numbers in use or vacant
	n      uint32   // in use
	vacant uint32   // 1 + the first vacant number; they are chained by ordinal
	live   index    // of the calls that made blocks that are live

	names  sites.Names
	places sites.Table
	args   map[uint32][]trace.Arg // of the few calls that have any

	// Above these many names and words of places, unused ones are looked for.
	maxNames, maxWords int

	recent [4]recent
	next   int
	frames []uint64 // of the record made last
	texts  []string
}

// recent is a name looked up lately.
type recent struct {
	name string
	id   uint32
}

// kept is one call. It has a cache line for itself.
type kept struct {
	ordinal, seq uint64
	time         int64
	id, size     uint64
	resource     uint32
	context      uint32
	function     uint32
	place        uint32
	refs         uint32 // how often the block was allocated, less 1
	op           trace.Op
	args         bool
	unknown      bool // see Leaks.Unknown
}

// wide is what few formats tell of a call.
type wide struct {
	index, thread uint64
	tid, cpu      int32
}

// maxRefs are references that a block keeps for ever.
const maxRefs = 1<<32 - 1

// vacant is the op of a number that is free.
const vacant = trace.Op(255)

const (
	// The first chunk begins small: there may be a process for each call.
	firstChunk = 8

	chunkBits = 12
	chunkSize = 1 << chunkBits

	// As many names and words are kept without a look at whether they are used.
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

// release takes off a reference and says whether there was one to spare.
func (s *store) release(n uint32) bool {
	k := s.at(n)
	if k.refs != 0 && k.refs != maxRefs {
		k.refs--
		return true
	}
	return k.refs == maxRefs
}

func (s *store) at(n uint32) *kept { return &s.chunks[n>>chunkBits][n&(chunkSize-1)] }

// add keeps a call as the given operation and returns its number.
func (s *store) add(r *trace.Record, ordinal uint64, op trace.Op) uint32 {
	c := &r.Call
	if s.places.Words() > s.maxWords || s.names.Len() > s.maxNames {
		s.shrink()
	}
	function := s.function(c.Function)
	place := s.places.Add(&c.Stack, &c.Caller, &s.names)
	n := s.number()
	k := s.at(n) // field by field: a literal would be made first and then copied
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

// number takes a vacant number or a new one.
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

// widen makes room for a wide of each number.
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

// function is names.Add with a memory for the last few.
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

// shrink drops names and places that no call has any more. The next time is when
// there are twice as many of them.
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
