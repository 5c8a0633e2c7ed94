package record

import (
	"slices"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// stacks holds the stacks of calls, and what checks them.
type stacks struct {
	byHash   map[uint64]*order.StackDef
	checked  map[uint64]*order.StackDef // by ID
	raws     map[uint64]*order.RawStack // by ID, until their place in the order comes
	coverage Coverage
	mappings *mappings
	copies   *copies
	verifier *verifier // nil if no stacks are checked
	stats    *Stats
}

// add adds the stacks of a batch.
func (s *stacks) add(defs []order.StackDef, raws []order.RawStack) {
	for i := range defs {
		def := defs[i]
		s.byHash[def.Hash] = &def
	}
	for i := range raws {
		raw := raws[i]
		s.raws[raw.ID] = &raw
	}
}

// describe fills in the stack with a hash and returns its definition, or nil if the
// definition was lost.
func (s *stacks) describe(hash uint64, to *trace.Stack) *order.StackDef {
	def := s.byHash[hash]
	if def == nil {
		to.End, to.Reason = trace.StackFailed, "lost"
		return nil
	}
	late := def.Late
	def = s.settle(def)
	to.Frames, to.FramePointer = def.Frames, def.FramePointer
	to.End, to.Reason = stackEnd(def.End)
	to.ID = def.ID
	if late {
		delete(s.byHash, hash) // no other event has it
	} else if s.coverage.Doubtful() {
		s.coverage.limit(to)
	}
	return def
}

// keep returns a number for the stack with a hash that describe takes as a hash at any later time.
// It returns 0 if the definition was lost.
func (s *stacks) keep(hash uint64) uint64 {
	var now trace.Stack
	def := s.describe(hash, &now)
	if def == nil {
		return 0
	}
	if len(now.Frames) < len(def.Frames) { // the tables are doubtful now, and later nobody knows
		def = s.settle(&order.StackDef{Hash: hash, Frames: now.Frames, End: object.ProbeStackEndSTACK_UNMAPPED})
	}
	s.byHash[def.ID] = def
	return def.ID
}

// settle returns the definition that represents def in the trace. An invalid frame
// pointer leads to words that look like frames, so settle cuts a stack at its first use,
// at the first frame that is not code. Stacks with the same frames and end then share one
// definition.
func (s *stacks) settle(def *order.StackDef) *order.StackDef {
	if def.ID != 0 {
		return def
	}
	def.Late = false // others with the same frames may use the definition
	if def.FramePointer && def.End != object.ProbeStackEndSTACK_HELPER {
		s.cut(def)
	}
	id := def.Identify()
	if same := s.checked[id]; same != nil {
		s.byHash[def.Hash] = same
		return same
	}
	def.ID = id
	s.checked[id] = def
	return def
}

// cut ends a stack before the first frame that is not code, and after the first frame
// that had no table yet.
func (s *stacks) cut(def *order.StackDef) {
	for i, addr := range def.Frames[1:] {
		inCode := s.mappings.code(addr)
		if inCode && s.coverage.Trusts(def.Frames[i], s.mappings.inFile(def.Frames[i])) {
			continue
		}
		def.Frames = slices.Clone(def.Frames[:i+1])
		def.End = object.ProbeStackEndSTACK_UNMAPPED
		if !inCode {
			def.End = object.ProbeStackEndSTACK_BAD_POINTER
		}
		def.FramePointer = i > 0
		return
	}
}

// stackEnd returns how a stack ended, and the reason, as traces contain it.
func stackEnd(end object.ProbeStackEnd) (trace.StackEnd, string) {
	switch end {
	case object.ProbeStackEndSTACK_COMPLETE:
		return trace.StackComplete, ""
	case object.ProbeStackEndSTACK_TRUNCATED:
		return trace.StackTruncated, ""
	case object.ProbeStackEndSTACK_HELPER:
		return trace.StackUnknown, ""
	case object.ProbeStackEndSTACK_BAD_POINTER:
		return trace.StackFailed, "frame-pointer"
	case object.ProbeStackEndSTACK_NO_RULE:
		return trace.StackFailed, "no-rule"
	case object.ProbeStackEndSTACK_UNMAPPED:
		return trace.StackFailed, reasonUnmapped
	case object.ProbeStackEndSTACK_BAD_FRAME:
		return trace.StackFailed, "bad-frame"
	default:
		return trace.StackFailed, "unreadable"
	}
}

// raw handles a raw stack. The event that refers to it comes next, or came before.
func (s *stacks) raw(id uint64) {
	raw := s.raws[id]
	delete(s.raws, id)
	switch {
	case raw == nil:
	case raw.Late:
		s.byHash[raw.Hash] = s.copies.late(raw)
		s.stats.Late++
	case s.verifier != nil && !s.coverage.Doubtful():
		if def := s.byHash[raw.Hash]; def != nil {
			s.verifier.check(raw, s.settle(def))
		}
	}
}

// usedIn reports whether the stack of a call after time has a frame in m.
func (s *stacks) usedIn(m process.Mapping, time uint64) bool {
	for _, def := range s.checked {
		if def.Used > time && slices.ContainsFunc(def.Frames, m.Contains) {
			return true
		}
	}
	return false
}

// count adds the counts of stacks to all.
func (s *stacks) count(all *Stats) {
	all.DistinctStacks = len(s.checked)
	if v := s.verifier; v != nil {
		all.Verified, all.VerifyDiffers = v.checked, v.differs
	}
}
