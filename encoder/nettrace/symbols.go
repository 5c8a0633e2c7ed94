package nettrace

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"rtrace-bpf/internal/frametext"
	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// note remembers the frames of a new stack.
func (s *system) note(e *Writer, pid int32, st *trace.Stack) {
	p := s.space(pid)
	if !p.written && e.head.Sequence > 0 { // the first event is rtrace's own, by which a stream is recognised
		s.program(e, p)
	}
	for i, f := range st.Frames {
		name, ok := p.frames[f]
		if ok && name != "" {
			continue
		}
		if i < len(st.Names) {
			name = strings.Clone(functionOf(st.Names[i]))
		}
		if !ok || name != "" {
			p.frames[f] = name
		}
	}
}

// functionOf returns the function in the text of a frame. Of several inlined functions
// it returns the outermost, because a symbol is a range of code.
func functionOf(text string) string {
	for {
		inner, outer := frametext.Outer(text)
		if outer == "" {
			return frametext.Parse(inner).Function
		}
		text = outer
	}
}

// unmap writes the functions of the mappings between two addresses and forgets those
// mappings.
func (s *system) unmap(e *Writer, p *space, start, end uint64) {
	p.mappings = slices.DeleteFunc(p.mappings, func(m mapped) bool {
		if m.End <= start || m.Start >= end {
			return false
		}
		s.symbols(e, p, &m)
		return true
	})
}

// end writes everything known about all processes at the end of a stream.
func (s *system) end(e *Writer) {
	for _, pid := range slices.Sorted(maps.Keys(s.spaces)) {
		p := s.spaces[pid]
		if p.name != "" || len(p.mappings) > 0 {
			s.program(e, p)
		}
		s.unmap(e, p, 0, ^uint64(0))
		s.compiled(e, p)
	}
}

// compiledFile is the name that recorders of .NET give the memory into which code is
// compiled. memoryFile begins the path of any file that is memory: the code in it is
// known once a runtime has reported it.
const (
	compiledFile = memoryFile + "doublemapper"
	memoryFile   = "/memfd:"
)

// function returns the compiled function to which a return address belongs, or nil.
func (p *space) function(frame uint64) *trace.Function {
	if !p.sorted {
		slices.SortFunc(p.code, func(a, b trace.Function) int { return cmp.Compare(a.Start, b.Start) })
		p.sorted = true
	}
	// The last function that begins before the call.
	i, _ := slices.BinarySearchFunc(p.code, frame, func(c trace.Function, f uint64) int { return cmp.Compare(c.Start, f) })
	if i == 0 || frame > p.code[i-1].End {
		return nil
	}
	return &p.code[i-1]
}

// compiled writes the functions of frames that no file has, each in a mapping of its
// own.
func (s *system) compiled(e *Writer, p *space) {
	if e.opts.Version == V4 && p.pid != e.process.pid {
		return
	}
	var last uint64
	for _, f := range slices.Sorted(maps.Keys(p.frames)) {
		c := p.function(f)
		if c == nil || f <= last {
			continue
		}
		last = c.End
		m := mapped{trace.Mapping{Start: c.Start, End: c.End, Path: compiledFile}, 0}
		s.id++
		m.id = s.id
		s.writeMapping(e, p, &m, 0)
		s.symbol(e, p, &m, c.Start, c.End, c.Name)
	}
}

// symbols writes the functions that were called in a mapping. A symbol reaches from the
// call of its first frame to the return address of the last one that has no other
// function before it.
func (s *system) symbols(e *Writer, p *space, m *mapped) {
	if e.opts.Version == V4 && p.pid != e.process.pid {
		return
	}
	var at []uint64
	for f := range p.frames {
		if f > m.Start && f <= m.End {
			at = append(at, f)
		}
	}
	slices.Sort(at)
	memory := strings.HasPrefix(m.Path, memoryFile)
	var name string
	var first, last uint64
	for _, f := range at {
		n := p.frames[f]
		if n == "" && e.opts.Symbols != nil {
			n = e.opts.Symbols.Function(p.pid, f)
		}
		if n == "" && memory {
			c := p.function(f)
			if c == nil {
				continue // the runtime may report it later
			}
			n = c.Name
		}
		delete(p.frames, f)
		if n == name {
			last = f
			continue
		}
		s.symbol(e, p, m, first, last, name)
		name, first, last = strings.Clone(n), max(f-1, last+1), f
	}
	s.symbol(e, p, m, first, last, name)
}

// symbol writes a function, if it has a name.
func (s *system) symbol(e *Writer, p *space, m *mapped, first, last uint64, name string) {
	if name == "" {
		return
	}
	s.id++
	b := binary.AppendUvarint(nil, s.id)
	b = binary.AppendUvarint(b, m.id)
	b = binary.AppendUvarint(b, first)
	b = binary.AppendUvarint(b, last)
	b = appendCharacters(b, name)
	s.write(e, p, wire.SystemSymbol, b)
	e.stats.Symbols++
}
