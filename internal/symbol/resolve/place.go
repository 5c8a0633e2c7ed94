package resolve

import (
	"path"
	"strconv"

	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/lines"
)

// place returns the frame of an address in f, with lines and inlined functions.
func (m *module) place(r *Resolver, f *symbol.File, at uint64) *frame {
	if fr, ok := m.places[at]; ok {
		return fr
	}
	r.frame = r.frames(r.frame[:0], m, f, at)
	fr := m.joined(r.frame, r.options.Style.FullPath)
	m.keep(fr)
	if m.places == nil {
		m.places = make(map[uint64]*frame)
	}
	m.places[at] = fr
	return fr
}

// joined makes one frame of the functions that are active at an address, because the trace
// has one address for all of them. Inlined functions come first. Functions without a name
// are left out.
func (m *module) joined(frames []lines.Frame, fullPath bool) *frame {
	all := &frame{module: m.path}
	for i := range frames {
		fr := &frames[i]
		if fr.Function == "" {
			continue
		}
		source, text := printed(fr.Function)
		if all.name == "" {
			all.name = source
		} else {
			all.text += frametext.InlinedBy
		}
		all.text += text
		if fr.File == "" || fr.Line == 0 {
			all.text += " from " + m.path
			continue
		}
		file := symbol.Printable(fr.File)
		if !fullPath {
			file = path.Base(file)
		}
		all.text += " at " + file + ":" + strconv.Itoa(fr.Line)
	}
	if all.name == "" {
		return m.bare
	}
	return all
}
