// Package mtrc contains the definitions that the readers and writers of
// mpatrol's tracing files share: constants of the file and the events in it.
// docs/formats/mtrc.md describes the format. Where the manual of mpatrol
// (appendix F.2) and its code differ, this package follows the code.
package mtrc

// Format is the name of the format.
const Format = "mtrc"

// Magic begins and ends a stream.
const Magic = "MTRC"

// Versions of the library, as v*10000 + rr*100 + ff.
const (
	Version       = 10501 // written by us: the last release, 1.5.1
	VersionFirst  = 10300 // of the first release
	VersionSource = 10405 // from this version on events have a Source
	VersionEnd    = 10600 // the first that readers reject
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
	// Names is the number of functions, and of files, that the library and its
	// tool can name: ids are 1 to Names. Higher ids crash the tool.
	Names = 32
	// MaxID is the highest id in the format.
	MaxID = 127
	// MaxName is the length of the longest name that the tool accepts, in bytes
	// without its NUL.
	MaxName = 1023
	// Define is set in an id that is followed by its name.
	Define = 0x80
)

// Resource is the type of the only resource whose calls are events.
const Resource = "memory"

// MaxTID is the highest thread ID of a Linux kernel. Higher thread numbers are
// results of pthread_self.
const MaxTID = 1 << 22

// LegacyLimit is the smallest number that the 64-bit tool misreads. It may then
// lose its position in the file.
const LegacyLimit = 1 << 31

// Event is a record.
type Event struct {
	Kind    Kind
	Index   uint64 // of the block; not of Heap and Internal
	Address uint64 // not of Free
	Size    uint64 // bytes; not of Free
	Source  Source // of Alloc, Realloc and Free from VersionSource on
}

// Source is the place that an event came from.
type Source struct {
	Thread         uint64 // 0 if unknown
	Function, File Name
	Line           uint64 // 0 if unknown
}

// Name is an optional text. No text differs from an empty one.
type Name struct {
	Text  string
	Known bool
}

// Header is the header before the events.
type Header struct {
	Words int // size of its two words in bytes, 4 or 8
	Big   bool
	// ShortVersion reports that the second word has 4 bytes although the first
	// has 8, as on 64-bit Windows.
	ShortVersion bool
	Version      uint64
}

// HasSource reports whether the events of the stream have a Source.
func (h Header) HasSource() bool { return h.Version >= VersionSource }
