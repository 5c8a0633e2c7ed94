package process

import (
	"rtrace-bpf/internal/symbol"
)

// Mapping is an executable mapping as the kernel names it.
type Mapping struct {
	Start, End   uint64
	Offset       uint64
	Major, Minor uint32
	Inode        uint64
	Path         string
	deleted      bool
	Seen         uint64 // when it was first seen to be there
}

// Bias returns what was added to the addresses of its file, which has these segments.
func (m *Mapping) Bias(segments []symbol.Segment) uint64 {
	return symbol.Bias(segments, m.Start, m.End, m.Offset)
}

// ModuleKey tells mappings apart.
type ModuleKey struct {
	start, end, offset uint64
	file               FileID
}

// Key returns what tells the mapping from others.
func (m *Mapping) Key() ModuleKey {
	return ModuleKey{m.Start, m.End, m.Offset, FileID{Major: m.Major, Minor: m.Minor, Inode: m.Inode}}
}

// FileInfo is what the file of a mapping tells.
type FileInfo struct {
	BuildID string
	Fixed   bool   // linked at fixed addresses
	Bias    uint64 // what was added to its addresses when it was mapped
	Known   bool

	Segments []symbol.Segment
}

// Same says whether two descriptions are of one mapping; a file may have been
// renamed or deleted in between.
func (m Mapping) Same(o Mapping) bool {
	return m.Start == o.Start && m.End == o.End && m.Offset == o.Offset && m.Inode == o.Inode
}

// Contains reports whether an address is in the mapping.
func (m Mapping) Contains(addr uint64) bool { return addr >= m.Start && addr < m.End }

// Overlaps says whether both have an address in common.
func (m Mapping) Overlaps(o Mapping) bool { return m.Start < o.End && o.Start < m.End }

// ID returns what tells the mapping's file from others.
func (m Mapping) ID() FileID { return FileID{Major: m.Major, Minor: m.Minor, Inode: m.Inode} }

// Extent is addresses [start, end).
type Extent struct{ Start, End uint64 }

// Trampolines is the mapping that probed functions return through. Addresses in
// it stand for others (bpf/trampoline.h).
const Trampolines = "[uprobes]"

// FileID tells files apart whatever their names.
type FileID struct {
	Major, Minor uint32
	Inode        uint64
}

// Place returns where the mapping is.
func (k ModuleKey) Place() Mapping { return Mapping{Start: k.start, End: k.end} }
