package tracer

// relocate reports where the code of an allocator is after a file was mapped: a new
// program has it elsewhere.
func (s *stream) relocate(m mapping, info fileInfo) {
	known := false
	for i := range s.process.texts {
		x := &s.process.texts[i]
		if m.id() != x.file {
			continue
		}
		known = true
		if code := x.in(m, info); code != x.code {
			x.code = code
			s.moved(i, code)
		}
	}
	switch {
	case known:
		s.stats.Unprobed = s.stranger
	case s.execed && s.stats.Unprobed && s.anyAllocator && s.process.defines(m):
		s.stranger = true
	}
}
