package resolve

import "rtrace-bpf/internal/symbol"

// place returns the frame of an address in f, with lines and inlined functions.
func (m *module) place(r *Resolver, f *symbol.File, at uint64) *frame {
	if fr, ok := m.frames.places[at]; ok {
		return fr
	}
	r.frame = r.frames(r.frame[:0], m, f, at)
	fr := m.frames.joined(r.frame, r.options.Style.FullPath)
	m.frames.putPlace(at, fr)
	return fr
}
