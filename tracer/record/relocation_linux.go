package record

import (
	"rtrace-bpf/tracer/process"
)

// relocate reports the new place of an allocator's code after m was mapped: a new program
// has it elsewhere.
func (s *Stream) relocate(m process.Mapping, info process.FileInfo) {
	known := false
	for i := range s.process.Texts {
		x := &s.process.Texts[i]
		if m.ID() != x.File {
			continue
		}
		known = true
		if code := x.In(m, info); code != x.Code {
			x.Code = code
			s.moved(i, code)
		}
	}
	switch {
	case known:
		s.Stats.Unprobed = s.stranger
	case s.execed && s.Stats.Unprobed && s.anyAllocator && s.process.Defines(m):
		s.stranger = true
	}
}
