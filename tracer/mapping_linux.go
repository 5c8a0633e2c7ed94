package tracer

import (
	"rtrace-bpf/internal/symbol"
)

// mapping is an executable mapping as the kernel names it.
type mapping struct {
	start, end   uint64
	offset       uint64
	major, minor uint32
	inode        uint64
	path         string
	deleted      bool
	seen         uint64 // when it was first seen to be there
}

// bias returns what was added to the addresses of its file, which has these segments.
func (m *mapping) bias(segments []symbol.Segment) uint64 {
	return symbol.Bias(segments, m.start, m.end, m.offset)
}

// moduleKey tells mappings apart.
type moduleKey struct {
	start, end, offset uint64
	file               fileID
}

// key returns what tells the mapping from others.
func (m *mapping) key() moduleKey {
	return moduleKey{m.start, m.end, m.offset, fileID{major: m.major, minor: m.minor, inode: m.inode}}
}

// fileInfo is what the file of a mapping tells.
type fileInfo struct {
	buildID string
	fixed   bool   // linked at fixed addresses
	bias    uint64 // what was added to its addresses when it was mapped
	known   bool

	segments []symbol.Segment
}

// same says whether two descriptions are of one mapping; a file may have been
// renamed or deleted in between.
func (m mapping) same(o mapping) bool {
	return m.start == o.start && m.end == o.end && m.offset == o.offset && m.inode == o.inode
}

// contains reports whether an address is in the mapping.
func (m mapping) contains(addr uint64) bool { return addr >= m.start && addr < m.end }

// overlaps says whether both have an address in common.
func (m mapping) overlaps(o mapping) bool { return m.start < o.end && o.start < m.end }

// id returns what tells the mapping's file from others.
func (m mapping) id() fileID { return fileID{major: m.major, minor: m.minor, inode: m.inode} }

// extent is addresses [start, end).
type extent struct{ start, end uint64 }

// trampolines is the mapping that probed functions return through. Addresses in
// it stand for others (bpf/trampoline.h).
const trampolines = "[uprobes]"

// fileID tells files apart whatever their names.
type fileID struct {
	major, minor uint32
	inode        uint64
}

// place returns where the mapping is.
func (k moduleKey) place() mapping { return mapping{start: k.start, end: k.end} }
