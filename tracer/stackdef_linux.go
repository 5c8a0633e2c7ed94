package tracer

import (
	"slices"

	"rtrace-bpf/trace"
)

// describe fills in the stack of a hash and returns its definition, nil if that
// was lost.
func (s *stream) describe(hash uint64, to *trace.Stack) *stackDef {
	def := s.byHash[hash]
	if def == nil {
		to.End, to.Reason = trace.StackFailed, "lost"
		return nil
	}
	late := def.late
	def = s.settle(def)
	to.Frames, to.FramePointer = def.frames, def.framePointer
	to.End, to.Reason = stackEnd(def.end)
	if late {
		delete(s.byHash, hash) // no other event has it
	} else if s.coverage.doubtful() {
		s.coverage.limit(to)
	}
	return def
}

// settle returns the definition that stands for def in the trace. A frame
// pointer that is none leads to words that look like frames; so when a stack is
// first used, it is cut at the first frame that is no code. Stacks that are the
// same then become one.
func (s *stream) settle(def *stackDef) *stackDef {
	if def.id != 0 {
		return def
	}
	def.late = false // as the definition of its frames it may serve others
	if def.framePointer && def.end != probeStackEndSTACK_HELPER {
		s.cut(def)
	}
	id := def.identify()
	if same := s.checked[id]; same != nil {
		s.byHash[def.hash] = same
		return same
	}
	def.id = id
	s.checked[id] = def
	return def
}

// cut ends a stack before the first frame that is no code, and behind one that
// had no table yet.
func (s *stream) cut(def *stackDef) {
	for i, addr := range def.frames[1:] {
		inCode := s.mappings.code(addr)
		if inCode && s.coverage.trusts(def.frames[i], s.mappings.inFile(def.frames[i])) {
			continue
		}
		def.frames = slices.Clone(def.frames[:i+1])
		def.end = probeStackEndSTACK_UNMAPPED
		if !inCode {
			def.end = probeStackEndSTACK_BAD_POINTER
		}
		def.framePointer = i > 0
		return
	}
}

// stackEnd says in the words of a trace how a stack ended.
func stackEnd(end probeStackEnd) (trace.StackEnd, string) {
	switch end {
	case probeStackEndSTACK_COMPLETE:
		return trace.StackComplete, ""
	case probeStackEndSTACK_TRUNCATED:
		return trace.StackTruncated, ""
	case probeStackEndSTACK_HELPER:
		return trace.StackUnknown, ""
	case probeStackEndSTACK_BAD_POINTER:
		return trace.StackFailed, "frame-pointer"
	case probeStackEndSTACK_NO_RULE:
		return trace.StackFailed, "no-rule"
	case probeStackEndSTACK_UNMAPPED:
		return trace.StackFailed, reasonUnmapped
	case probeStackEndSTACK_BAD_FRAME:
		return trace.StackFailed, "bad-frame"
	default:
		return trace.StackFailed, "unreadable"
	}
}

// raw handles a raw stack: an event of the programs' refers to it next, or has
// done so.
func (s *stream) raw(id uint64) {
	raw := s.raws[id]
	delete(s.raws, id)
	switch {
	case raw == nil:
	case raw.late:
		s.byHash[raw.hash] = s.copies.late(raw)
		s.stats.Late++
	case s.verifier != nil && !s.coverage.doubtful():
		if def := s.byHash[raw.hash]; def != nil {
			s.verifier.check(raw, s.settle(def))
		}
	}
}
