package resolve

import (
	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/trace"
)

// Mapped is a mapping and what is known about its file.
type Mapped struct {
	trace.Mapping        // as it was added
	BuildID       string // empty if unknown
	// Placed reports that Offset is known, from the trace or from the file.
	Placed bool
}

// Mapping returns the mapping at the call before the return address addr. ok is false if
// nothing is mapped there.
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
		// Start may correspond to an address in the file before the first code, because a
		// mapping may start at the load base.
		if start := m.Start - at.bias; start <= s.Addr && s.Addr-start <= s.Offset {
			m.Offset, m.Placed = s.Offset-(s.Addr-start), true
			break
		}
	}
	return m, true
}

// Offset returns the function that contains the call before the return address addr, as the
// linker knows it, and how many bytes after its start addr is. ok is false if no function is
// known.
func (p *Process) Offset(addr uint64) (name string, bytes uint64, ok bool) {
	m, f, at := p.locate(addr - 1)
	if m == nil || f == nil {
		return "", 0, false
	}
	n := f.Find(at)
	if n < 0 {
		return "", 0, false
	}
	s := f.At(n)
	return s.Name, at + 1 - s.Addr, true
}

// Frames appends the functions that are active at the call before the return address addr,
// the innermost first, with lines where there is debugging information. It appends nothing
// if no function is known.
func (p *Process) Frames(dst []lines.Frame, addr uint64) []lines.Frame {
	m, f, at := p.locate(addr - 1)
	n := len(dst)
	switch {
	case m == nil:
		p.resolver.unmapped++
		return dst
	case f != nil:
		dst = p.resolver.frames(dst, m.module, f, at)
	case m.module.noFile:
		if _, _, named := p.functions.Lookup(addr - 1); !named {
			p.resolver.generated++
		}
		return dst
	}
	if len(dst) == n+1 && dst[n].Function == "" && dst[n].File == "" {
		dst = dst[:n]
	}
	if len(dst) == n && m.module.path != vsyscallName {
		m.module.unnamed++
	}
	return dst
}
