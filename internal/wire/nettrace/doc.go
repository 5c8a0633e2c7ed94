// Package nettrace holds what the readers and writers of .NET's nettrace streams
// (EventPipe) must agree on: numbers of the containers of version 4 and 6, the
// head of an event, codes of types, and the names of providers with the events
// of theirs that are known. The format is described in docs/formats/nettrace.md.
package nettrace

// Format is the name of the format in records and errors.
const Format = "nettrace"

// The beginning of a stream. In version 4 the magic is followed by the length of
// Serializer as a 32-bit number and by Serializer itself; where that number is 0
// the stream is of version 6 or later, and two 32-bit numbers follow: the major
// and the minor version.
const (
	Magic      = "Nettrace"
	Serializer = "!FastSerialization.1"

	MajorV6 = 6
	HeadV4  = len(Magic) + 4 + len(Serializer) // bytes in front of the first object
	HeadV6  = len(Magic) + 12                  // bytes in front of the first block

)

// Tags of version 4. An object is BeginPrivate twice, Null, its version, the
// lowest version of a reader, the length of its name, the name, EndObject, the
// payload, EndObject. Null in place of an object ends the stream. Version 3 has
// BeginObject where version 4 has BeginPrivate.
const (
	TagNull         = 1
	TagBeginObject  = 4
	TagBeginPrivate = 5
	TagEndObject    = 6
)

// Names of the objects of version 4. Trace is the first.
const (
	ObjectTrace    = "Trace"
	ObjectEvent    = "EventBlock"
	ObjectMetadata = "MetadataBlock"
	ObjectStack    = "StackBlock"
	ObjectSequence = "SPBlock"
)

// Versions of the objects, which are also the lowest versions of their readers.
const (
	VersionTrace = 4
	VersionBlock = 2
)

// Sizes of version 4, in bytes.
const (
	TraceSize  = 48 // payload of Trace, which has no size of its own in front
	HeaderSize = 20 // of event and metadata blocks, at least
	Align      = 4  // payloads of blocks begin at a multiple of this in the stream
	MaxName    = 38 // of an object; the reference reader takes no more
)

// Limits of readers. What Microsoft's runtime writes stays below 103,000 bytes a
// block; version 6 has no room for more than MaxBlock. TraceEvent keeps the
// length of a payload in 16 bits, and of a stack as well.
const (
	MaxBlock     = 1<<24 - 1
	MaxPayload   = 65535
	MaxStackSize = 65527
)

// FlagCompressed of a block of events or metadata says that its events have
// compressed heads.
const FlagCompressed = 1

// BlockKind is the kind of a block of version 6: the high byte of the word that
// stands in front, whose lower 24 bits are the size.
type BlockKind uint8

// The kinds of blocks of version 6. Unknown ones are skipped.
const (
	BlockEnd BlockKind = iota
	BlockTrace
	BlockEvent
	BlockMetadata
	BlockSequence
	BlockStack
	BlockThread
	BlockRemoveThread
	BlockLabels
	blockKinds
)

var blockNames = [blockKinds]string{
	"EndOfStream", "Trace", "Event", "Metadata", "SequencePoint", "Stack", "Thread", "RemoveThread", "LabelList",
}

// String returns the name of the kind, or "Unknown".
func (k BlockKind) String() string {
	if k < blockKinds {
		return blockNames[k]
	}
	return "Unknown"
}

// Flags of a sequence point of version 6. Stacks and lists of labels are always
// forgotten there, and always in version 4.
const (
	FlushThreads  = 1
	FlushMetadata = 2
)

// Keys of the trace block of version 6.
const (
	KeyProcessors = "HardwareThreadCount"
	KeyProcessID  = "ProcessId"
	KeySampling   = "ExpectedCPUSamplingRate"
	KeyPageSize   = "SystemPageSize"
)

// Kinds of items of a row of a thread block.
const (
	ThreadName      = 1 // string
	ThreadProcess   = 2 // process id, variable
	ThreadID        = 3 // thread id of the system, variable
	ThreadAttribute = 4 // key and value
)

// Kinds of labels. LabelLast is set in the last one of a list.
const (
	LabelLast     = 0x80
	LabelActivity = 1 // 16 bytes
	LabelRelated  = 2 // 16 bytes
	LabelTraceID  = 3 // 16 bytes
	LabelSpanID   = 4 // 8 bytes
	LabelString   = 5 // key and string
	LabelNumber   = 6 // key and zigzag number
	LabelOpcode   = 7 // 1 byte
	LabelKeywords = 8 // 8 bytes
	LabelLevel    = 9 // 1 byte
	LabelVersion  = 10
)
