// Package nettrace contains the definitions that the readers and writers of
// .NET's nettrace streams (EventPipe) share: the numbers of the containers of
// versions 4 and 6, the header of an event, type codes, and the names of
// providers with their known events. docs/formats/nettrace.md describes the
// format.
package nettrace

// Format is the name of the format in records and errors.
const Format = "nettrace"

// The beginning of a stream. In version 4 the magic is followed by the length
// of Serializer as a 32-bit number and by Serializer itself. If that number is
// 0, the stream has version 6 or later, and two 32-bit numbers follow: the
// major and the minor version.
const (
	Magic      = "Nettrace"
	Serializer = "!FastSerialization.1"

	MajorV6 = 6
	HeadV4  = len(Magic) + 4 + len(Serializer) // bytes before the first object
	HeadV6  = len(Magic) + 12                  // bytes before the first block
)

// Tags of version 4. An object is BeginPrivate twice, Null, its version, the
// lowest version of a reader, the length of its name, the name, EndObject, the
// payload, EndObject. Null instead of an object ends the stream. Version 3 has
// BeginObject instead of BeginPrivate.
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
	TraceSize  = 48 // payload of Trace, which is not preceded by its size
	HeaderSize = 20 // minimum, of event and metadata blocks
	Align      = 4  // alignment of the payloads of blocks in the stream
	MaxName    = 38 // of an object; limit of the reference reader
)

// Limits of readers. Blocks from Microsoft's runtime stay below 103,000 bytes;
// version 6 cannot represent more than MaxBlock. TraceEvent stores the length
// of a payload in 16 bits, and that of a stack as well.
const (
	MaxBlock     = 1<<24 - 1
	MaxPayload   = 65535
	MaxStackSize = 65527
)

// FlagCompressed is set in the header of a block of events or metadata if its
// events have compressed headers.
const FlagCompressed = 1

// BlockKind is the kind of a block of version 6: the high byte of the word
// before the block, whose lower 24 bits are the size.
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

// Flags of a sequence point of version 6. Stacks and lists of labels always
// become invalid there, as they do in version 4.
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
