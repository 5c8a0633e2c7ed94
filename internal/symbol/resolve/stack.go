package resolve

import (
	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/trace"
)

// Mapped is a mapping and what is known of its file.
type Mapped struct {
	trace.Mapping        // as it appeared
	BuildID       string // empty if unknown
	// Placed says that Offset is known: the trace tells it, or the file does,
	// where that is at hand.
	Placed bool
}

// Mapping returns what is mapped where a call returns to addr. ok is false if
// nothing is.
func (p *Process) Mapping(addr uint64) (m Mapped, ok bool) {
	at, f, _ := p.locate(addr - 1)
	if at == nil {
		return Mapped{}, false
	}
	m = Mapped{at.whole, at.module.buildID, at.whole.Base != 0}
	if f == nil {
		return m, true
	}
	if m.BuildID == "" {
		m.BuildID = f.BuildID()
	}
	if m.Placed || !at.known {
		return m, true
	}
	for _, s := range f.Segments() {
		// The address that Start has in the file may lie before the first code:
		// a mapping may start at the load base.
		if start := m.Start - at.bias; start <= s.Addr && s.Addr-start <= s.Offset {
			m.Offset, m.Placed = s.Offset-(s.Addr-start), true
			break
		}
	}
	return m, true
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
