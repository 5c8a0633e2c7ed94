package resolve

import (
	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/trace"
)

// Mapping returns what is mapped where a call returns to addr, as it appeared,
// and the build-id of its file, which may be unknown. If the trace does not tell
// the offset, it is that of the file, where that is at hand. ok is false if
// nothing is mapped there.
func (p *Process) Mapping(addr uint64) (m trace.Mapping, buildID string, ok bool) {
	at, f, _ := p.locate(addr - 1)
	if at == nil {
		return trace.Mapping{}, "", false
	}
	m, buildID = at.whole, at.module.buildID
	if f == nil {
		return m, buildID, true
	}
	if buildID == "" {
		buildID = f.BuildID()
	}
	if m.Base == 0 && at.known {
		for _, s := range f.Segments() {
			// The address that Start has in the file may lie before the first
			// code: a mapping may start at the load base.
			if start := m.Start - at.bias; start <= s.Addr && s.Addr-start <= s.Offset {
				m.Offset = s.Offset - (s.Addr - start)
				break
			}
		}
	}
	return m, buildID, true
}

// Frames appends the functions that are active where a call returns to addr, the
// innermost first, with lines where there is debugging information, and nothing
// if no function is known.
func (p *Process) Frames(dst []lines.Frame, addr uint64) []lines.Frame {
	m, f, at := p.locate(addr - 1)
	if m == nil || f == nil {
		return dst
	}
	n := len(dst)
	if dst = p.resolver.frames(dst, m.module, f, at); len(dst) == n+1 && dst[n].Function == "" && dst[n].File == "" {
		return dst[:n]
	}
	return dst
}
