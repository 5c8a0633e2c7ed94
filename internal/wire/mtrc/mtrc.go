// Package mtrc holds what the readers and writers of mpatrol's tracing files
// must agree on: constants of the file and the events in it. The format is
// described in docs/formats/mtrc.md; where the manual of mpatrol (appendix F.2)
// and its code differ, the code is followed.
package mtrc

// Format is the name of the format.
const Format = "mtrc"

// Magic begins and ends a stream.
const Magic = "MTRC"

// Versions of the library, as v*10000 + rr*100 + ff.
const (
	Version       = 10501 // what we write: the last release, 1.5.1
	VersionFirst  = 10300 // the lowest in files of a release
	VersionSource = 10405 // from here on events have a Source
	VersionEnd    = 10600 // the first that readers refuse
)

// Kind is the first byte of a record.
type Kind byte

// The kinds of records. Any other byte ends a stream.
const (
	Alloc    Kind = 'A'
	Realloc  Kind = 'R'
	Free     Kind = 'F'
	Heap     Kind = 'H' // memory from the system for the program's blocks
	Internal Kind = 'I' // memory from the system for the library itself
)

// Limits of names.
const (
	// Names is how many of each sort of names the library and its tool keep:
	// ids are 1 to Names. Higher ones crash the tool.
	Names = 32
	// MaxID is the highest id that the format has room for.
	MaxID = 127
	// MaxName is the longest name in bytes, without its NUL, that the tool takes.
	MaxName = 1023
	// Define is set in an id that is followed by its name.
	Define = 0x80
)

// Resource is the type of the only resource whose calls are events.
const Resource = "memory"

// MaxTID is the highest thread id of a Linux kernel. Higher numbers of threads
// are what pthread_self returned.
const MaxTID = 1 << 22

// LegacyLimit is the first number that the 64-bit tool misreads, and with it
// may lose its place in the file.
const LegacyLimit = 1 << 31

// Event is a record.
type Event struct {
	Kind    Kind
	Index   uint64 // of the block; not of Heap and Internal
	Address uint64 // not of Free
	Size    uint64 // bytes; not of Free
	Source  Source // of Alloc, Realloc and Free from VersionSource on
}

// Source is where an event came from.
type Source struct {
	Thread         uint64 // 0 if unknown
	Function, File Name
	Line           uint64 // 0 if unknown
}

// Name is a text, or none, which is not the same as an empty one.
type Name struct {
	Text  string
	Known bool
}

// Header is what stands in front of the events.
type Header struct {
	Words int // bytes of its two words, 4 or 8
	Big   bool
	// ShortVersion says that the second word has 4 bytes although the first
	// has 8, as on 64-bit Windows.
	ShortVersion bool
	Version      uint64
}

// HasSource says whether the events of the stream have a Source.
func (h Header) HasSource() bool { return h.Version >= VersionSource }
