package nettrace

// Flags of a compressed head: the field follows, in this order. Without it the
// field is that of the event before in the same block, at its start all zero.
// The difference of the time follows behind FlagStack whatever the flags say.
const (
	FlagMetadata = 0x01 // variable, 32 bit
	FlagCapture  = 0x02 // difference of the number less 1, capturing thread, processor; all variable
	FlagThread   = 0x04 // variable, 64 bit; in version 6 an index
	FlagStack    = 0x08 // variable, 32 bit
	FlagActivity = 0x10 // 16 bytes; in version 6 a list of labels, variable
	FlagRelated  = 0x20 // 16 bytes; unused in version 6
	FlagSorted   = 0x40 // no field
	FlagPayload  = 0x80 // variable, 32 bit
)

// Unsorted is set in the metadata id of a head that is not compressed if events
// that are older may follow.
const Unsorted = 1 << 31

// Sizes of heads that are not compressed, less the word with the event's size.
const (
	PlainV4 = 76
	PlainV6 = 48
)

// Head is what stands in front of the payload of an event.
type Head struct {
	Metadata  uint32 // id; 0 for what describes metadata itself in version 4
	Sequence  uint32 // counted by each capturing thread
	Capture   uint64 // thread that wrote it: an id, in version 6 an index
	Thread    uint64 // thread that it is about: an id, in version 6 an index
	Processor uint32
	Stack     uint32 // id; 0 for none
	Time      uint64 // in ticks of the clock that the trace names
	Labels    uint32 // of version 6: index of a list; 0 for none
	Size      uint32 // bytes of the payload
	Sorted    bool   // no older event follows
}

// Type is the code of the type of a field.
type Type uint8

// The types of fields. Those up to GUID, String and Array are of version 4, Array
// only in metadata with tag TagParams.
const (
	TypeObject     Type = 1  // fields of its own
	TypeBoolean32  Type = 3  // 4 bytes
	TypeUTF16      Type = 4  // one code unit
	TypeSByte      Type = 5  //
	TypeByte       Type = 6  //
	TypeInt16      Type = 7  //
	TypeUInt16     Type = 8  //
	TypeInt32      Type = 9  //
	TypeUInt32     Type = 10 //
	TypeInt64      Type = 11 //
	TypeUInt64     Type = 12 //
	TypeSingle     Type = 13 //
	TypeDouble     Type = 14 //
	TypeDecimal    Type = 15 // 16 bytes
	TypeDateTime   Type = 16 // 8 bytes: 100 ns since 1601
	TypeGUID       Type = 17 // 16 bytes
	TypeString     Type = 18 // UTF-16 with a NUL behind it
	TypeArray      Type = 19 // 16-bit count and elements
	TypeVarInt     Type = 20 // zigzag
	TypeVarUInt    Type = 21 //
	TypeFixedArray Type = 22 // elements, their count is part of the type
	TypeUTF8       Type = 23 // one code unit
	TypeRelLoc     Type = 24 // 32 bits: size << 16 | distance from behind them
	TypeDataLoc    Type = 25 // 32 bits: size << 16 | position in the payload
	TypeBoolean8   Type = 26 // 1 byte
)

var typeNames = map[Type]string{
	TypeObject: "Object", TypeBoolean32: "Boolean32", TypeUTF16: "UTF16CodeUnit", TypeSByte: "SByte", TypeByte: "Byte",
	TypeInt16: "Int16", TypeUInt16: "UInt16", TypeInt32: "Int32", TypeUInt32: "UInt32", TypeInt64: "Int64", TypeUInt64: "UInt64",
	TypeSingle: "Single", TypeDouble: "Double", TypeDecimal: "Decimal", TypeDateTime: "DateTime", TypeGUID: "Guid",
	TypeString: "StringUTF16Z", TypeArray: "Array", TypeVarInt: "VarInt", TypeVarUInt: "VarUInt", TypeFixedArray: "FixedLengthArray",
	TypeUTF8: "UTF8CodeUnit", TypeRelLoc: "RelLoc", TypeDataLoc: "DataLoc", TypeBoolean8: "Boolean8",
}

// String returns the name of the type, or "" if the code is unknown.
func (t Type) String() string { return typeNames[t] }

// Size returns the bytes that a value takes, 0 if that differs.
func (t Type) Size() int {
	switch t {
	case TypeSByte, TypeByte, TypeUTF8, TypeBoolean8:
		return 1
	case TypeUTF16, TypeInt16, TypeUInt16:
		return 2
	case TypeBoolean32, TypeInt32, TypeUInt32, TypeSingle, TypeRelLoc, TypeDataLoc:
		return 4
	case TypeInt64, TypeUInt64, TypeDouble, TypeDateTime:
		return 8
	case TypeDecimal, TypeGUID:
		return 16
	}
	return 0
}

// Kinds of tags behind the fields of metadata of version 4, as of version 5 of
// the metadata: 32-bit size of what follows the kind, kind, bytes.
const (
	TagOpcode = 1 // 1 byte
	TagParams = 2 // the fields with types that version 4 has not; the list before is empty
)

// Kinds of optional items of a row of metadata of version 6. An unknown one is an
// error, as it has no size.
const (
	MetaOpcode      = 1 // 1 byte
	MetaKeywords    = 3 // 8 bytes
	MetaTemplate    = 4 // string
	MetaDescription = 5 // string
	MetaAttribute   = 6 // key and value
	MetaProvider    = 7 // 16 bytes: GUID
	MetaLevel       = 8 // 1 byte
	MetaVersion     = 9 // 1 byte
)

// Metadata describes the events of one kind.
type Metadata struct {
	ID       uint32 // by which events refer to it
	Provider string
	EventID  uint32
	Name     string // may be empty: native events of the runtime have none
	Keywords uint64
	Version  uint32
	Level    uint32
	Opcode   uint8
	Fields   []Field
}

// Field is a field of a payload.
type Field struct {
	Name    string
	Type    Type
	Element *Field  // of TypeArray, TypeFixedArray, TypeRelLoc and TypeDataLoc; it has no name
	Count   int     // of TypeFixedArray
	Fields  []Field // of TypeObject
}
