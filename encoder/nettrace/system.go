package nettrace

import (
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strings"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// system writes the events of Universal.System, which describe the processes to other
// readers. These events do not contain a process id: in version 4 they are about the
// process of the stream, and in version 6 about that of the thread.
type system struct {
	ids    map[uint32]uint32 // ids of metadata by event id
	tick   uint32            // metadata of AllocationTick
	spaces map[int32]*space
	last   *space
	builds map[string]trace.Module // by path
	id     uint64                  // last id of a mapping, its metadata or a symbol
}

// space is the address space of a process.
type space struct {
	pid      int32
	name     string // of the program, as in its command line
	written  bool   // the process was written
	mappings []mapped
	code     []trace.Function  // functions that are in no file
	sorted   bool              // code is sorted by start
	frames   map[uint64]string // return addresses in stacks, with their functions if the stacks name them
}

type mapped struct {
	trace.Mapping
	id uint64
}

// variable and characters are the types of the fields of Universal.System.
func variable(name string) wire.Field { return wire.Field{Name: name, Type: wire.TypeVarUInt} }

func characters(name string) wire.Field {
	return wire.Field{Name: name, Type: wire.TypeArray, Element: &wire.Field{Type: wire.TypeUTF8}}
}

var systemEvents = map[uint32]wire.Metadata{
	wire.SystemExistingProcess: {Name: "ExistingProcess", Fields: []wire.Field{
		variable("NamespaceId"), characters("Name"), characters("NamespaceName"),
	}},
	wire.SystemProcessExit: {Name: "ProcessExit"},
	wire.SystemMapping: {Name: "ProcessMapping", Fields: []wire.Field{
		variable("Id"), variable("StartAddress"), variable("EndAddress"), variable("FileOffset"), characters("FileName"), variable("MetadataId"),
	}},
	wire.SystemSymbol: {Name: "ProcessSymbol", Fields: []wire.Field{
		variable("Id"), variable("MappingId"), variable("StartAddress"), variable("EndAddress"), characters("Name"),
	}},
	wire.SystemMappingMetadata: {Name: "ProcessMappingMetadata", Fields: []wire.Field{
		variable("Id"), characters("SymbolMetadata"), characters("VersionMetadata"),
	}},
}

// start prepares for a stream.
func (s *system) start() {
	s.ids = make(map[uint32]uint32)
	s.spaces = make(map[int32]*space)
	s.builds = make(map[string]trace.Module)
}

// space returns the address space of a process.
func (s *system) space(pid int32) *space {
	if s.last != nil && s.last.pid == pid {
		return s.last
	}
	p := s.spaces[pid]
	if p == nil {
		p = &space{pid: pid, frames: make(map[uint64]string)}
		s.spaces[pid] = p
	}
	s.last = p
	return p
}

// write writes an event about a process with the given payload.
func (s *system) write(e *Writer, p *space, event uint32, payload []byte) {
	id, ok := s.ids[event]
	if !ok {
		m := systemEvents[event]
		m.Provider, m.EventID = wire.ProviderSystem, event
		id = e.defined.define(m)
		s.ids[event] = id
	}
	stack := e.stacks.none(e) // this may make a payload, too
	e.payload.data = append(e.payload.data[:0], payload...)
	e.place(p.pid, p.pid, 0, stack)
	e.write(id, 0)
}

// foreign reports whether something is left out because it is about another process than
// that of a version 4 stream, and counts it.
func (s *system) foreign(e *Writer, p *space) bool {
	if e.opts.Version == V4 && p.pid != e.process.pid {
		e.stats.Foreign++
		return true
	}
	return false
}

// record handles a record that is not a call, after the record itself was written.
func (s *system) record(e *Writer, r *trace.Record) {
	switch r.Kind {
	case trace.KindProcess:
		p := s.space(r.PID)
		p.name, p.written = strings.Clone(r.Process.Name), false
	case trace.KindModule:
		s.builds[strings.Clone(r.Module.Path)] = r.Clone().Module
	case trace.KindMapping:
		s.mapping(e, s.space(r.PID), &r.Mapping)
	case trace.KindFunction:
		p := s.space(r.PID)
		p.code, p.sorted = append(p.code, r.Clone().Function), false
	case trace.KindUnmapping:
		s.unmap(e, s.space(r.PID), r.Mapping.Start, r.Mapping.End)
	case trace.KindExec:
		p := s.space(r.PID)
		s.unmap(e, p, 0, ^uint64(0))
		p.name, p.written = strings.Clone(r.Exec.Name), false
	case trace.KindExit:
		if r.Exit.Process {
			p := s.space(r.PID)
			s.unmap(e, p, 0, ^uint64(0))
			s.compiled(e, p)
			if p.written && !s.foreign(e, p) {
				s.write(e, p, wire.SystemProcessExit, nil)
			}
			delete(s.spaces, r.PID)
			s.last = nil
		}
	}
	if e.opts.Symbols != nil {
		e.opts.Symbols.Observe(r)
	}
}

// mapping writes a mapping, after what is known about its file.
func (s *system) mapping(e *Writer, p *space, m *trace.Mapping) {
	s.unmap(e, p, m.Start, m.End)
	s.id++
	own := mapped{*m, s.id}
	own.Path = strings.Clone(m.Path)
	at, _ := slices.BinarySearchFunc(p.mappings, m.Start, func(a mapped, start uint64) int {
		if a.Start < start {
			return -1
		}
		return 1
	})
	p.mappings = slices.Insert(p.mappings, at, own)
	if s.foreign(e, p) {
		return
	}
	var metadata uint64
	if f, ok := s.builds[m.Path]; ok {
		s.id++
		metadata = s.id
		b := binary.AppendUvarint(nil, metadata)
		b = appendCharacters(b, s.describe(e, m, &f))
		b = appendCharacters(b, "{}")
		s.write(e, p, wire.SystemMappingMetadata, b)
	}
	s.writeMapping(e, p, &own, metadata)
}

// writeMapping writes a mapping that refers to what is known about its file.
func (s *system) writeMapping(e *Writer, p *space, m *mapped, metadata uint64) {
	b := binary.AppendUvarint(nil, m.id)
	b = binary.AppendUvarint(b, m.Start)
	b = binary.AppendUvarint(b, m.End)
	b = binary.AppendUvarint(b, m.Offset)
	b = appendCharacters(b, m.Path)
	b = binary.AppendUvarint(b, metadata)
	s.write(e, p, wire.SystemMapping, b)
}

// describe writes how to find a mapped file: what the reference reader takes from its
// ELF header.
func (s *system) describe(e *Writer, m *trace.Mapping, f *trace.Module) string {
	vaddr := m.Offset // as most linkers do
	if f.Fixed {
		vaddr = m.Start
	} else if e.opts.Symbols != nil {
		if bias, ok := e.opts.Symbols.Bias(m); ok {
			vaddr = m.Start - bias
		}
	}
	return fmt.Sprintf(`{"type":"ELF","debug_link":"","build_id":"%s","p_vaddr":"0x%x","p_offset":"0x%x"}`,
		hexadecimal(f.BuildID), vaddr, m.Offset)
}

// hexadecimal returns s if it is a hexadecimal number, else "".
func hexadecimal(s string) string {
	for i := range len(s) {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
			return ""
		}
	}
	return s
}

// appendCharacters appends a string of Universal.System.
func appendCharacters(dst []byte, s string) []byte {
	s = s[:min(len(s), 1<<14)]
	return append(binary.LittleEndian.AppendUint16(dst, uint16(len(s))), s...)
}

// program writes the process with the name of its program's file. The reference reader
// takes a stack for complete if its outermost frame is in that file or in the C
// library.
func (s *system) program(e *Writer, p *space) {
	if p.written {
		return
	}
	p.written = true
	if s.foreign(e, p) {
		return
	}
	command, _, _ := strings.Cut(p.name, " ")
	name := path.Base(command)
	if i := slices.IndexFunc(p.mappings, func(m mapped) bool { return path.Base(m.Path) == name }); i < 0 {
		// The process has another name, or is a script. The file that is mapped first
		// is the program.
		for _, m := range p.mappings {
			if base := path.Base(m.Path); strings.HasPrefix(m.Path, "/") && !strings.Contains(base, ".so") {
				name = base
				break
			}
		}
	}
	if name == "." || name == "/" {
		name = ""
	}
	b := binary.AppendUvarint(nil, uint64(uint32(p.pid)))
	b = appendCharacters(b, name)
	b = appendCharacters(b, "")
	s.write(e, p, wire.SystemExistingProcess, b)
}
