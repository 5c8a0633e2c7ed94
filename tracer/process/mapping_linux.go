package process

import (
	"rtrace-bpf/internal/symbol"
)

// Mapping is an executable mapping of a file or of anonymous memory, as in /proc/PID/maps.
type Mapping struct {
	Start, End   uint64
	Offset       uint64
	Major, Minor uint32
	Inode        uint64
	Path         string
	deleted      bool
	Seen         uint64 // the time at which it was first seen
}

// Bias returns what must be added to an address of the file, which has these segments, to
// get the address in the process.
func (m *Mapping) Bias(segments []symbol.Segment) uint64 {
	return symbol.Bias(segments, m.Start, m.End, m.Offset)
}

// ModuleKey identifies a mapping by its addresses and its file.
type ModuleKey struct {
	start, end, offset uint64
	file               FileID
}

// Key returns the mapping's key.
func (m *Mapping) Key() ModuleKey {
	return ModuleKey{m.Start, m.End, m.Offset, FileID{Major: m.Major, Minor: m.Minor, Inode: m.Inode}}
}

// FileInfo is what was read from the ELF file of a mapping.
type FileInfo struct {
	BuildID string
	Fixed   bool   // linked at fixed addresses
	Bias    uint64 // see Mapping.Bias
	Known   bool   // the file was read; without it the other fields are zero

	Segments []symbol.Segment
}

// Same reports whether m and o describe one mapping. The paths may differ, because the file
// may have been renamed or deleted in between.
func (m Mapping) Same(o Mapping) bool {
	return m.Start == o.Start && m.End == o.End && m.Offset == o.Offset && m.Inode == o.Inode
}

// Contains reports whether addr is in the mapping.
func (m Mapping) Contains(addr uint64) bool { return addr >= m.Start && addr < m.End }

// Overlaps reports whether the mappings have an address in common.
func (m Mapping) Overlaps(o Mapping) bool { return m.Start < o.End && o.Start < m.End }

// ID returns the key of the mapping's file.
func (m Mapping) ID() FileID { return FileID{Major: m.Major, Minor: m.Minor, Inode: m.Inode} }

// Extent is the range of addresses [Start, End).
type Extent struct{ Start, End uint64 }

// Trampolines is the name of the mapping that functions with return probes return through.
// On a stack, addresses in it stand for the replaced return addresses (bpf/trampoline.h).
const Trampolines = "[uprobes]"

// FileID identifies a file by its device and inode, whatever its names.
type FileID struct {
	Major, Minor uint32
	Inode        uint64
}

// Place returns a mapping with the addresses of k and no file.
func (k ModuleKey) Place() Mapping { return Mapping{Start: k.start, End: k.end} }
