package nettrace

// Flags of a compressed header: if set, the field follows, in this order.
// Otherwise the field is that of the previous event in the same block,
// initially all zero. The difference of the time always follows after
// FlagStack.
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

// Unsorted is set in the metadata ID of an uncompressed header if older events
// may follow.
const Unsorted = 1 << 31

// Sizes of uncompressed headers, without the word with the event's size.
const (
	PlainV4 = 76
	PlainV6 = 48
)

// Head is the header of an event.
type Head struct {
	Metadata  uint32 // ID; 0 for events that define metadata in version 4
	Sequence  uint32 // counted by each capturing thread
	Capture   uint64 // capturing thread: an ID, in version 6 an index
	Thread    uint64 // thread of the event: an ID, in version 6 an index
	Processor uint32
	Stack     uint32 // ID; 0 for none
	Time      uint64 // in ticks of the trace's clock
	Labels    uint32 // of version 6: index of a list; 0 for none
	Size      uint32 // length of the payload in bytes
	Sorted    bool   // no older event follows
}

// Type is the type code of a field.
type Type uint8

// The types of fields. Version 4 has those up to GUID, String and Array; Array
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
	TypeString     Type = 18 // UTF-16, terminated with a NUL
	TypeArray      Type = 19 // 16-bit count and elements
	TypeVarInt     Type = 20 // zigzag
	TypeVarUInt    Type = 21 //
	TypeFixedArray Type = 22 // elements; their count is part of the type
	TypeUTF8       Type = 23 // one code unit
	TypeRelLoc     Type = 24 // 32 bits: size << 16 | distance from the end of this field
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

// Size returns the size of a value in bytes, or 0 if it varies.
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

// Kinds of tags after the fields of metadata of version 4, from version 5 of
// the metadata on: 32-bit size of the part after the kind, kind, bytes.
const (
	TagOpcode = 1 // 1 byte
	TagParams = 2 // the fields, with types that version 4 lacks; the list before is empty
)

// Kinds of optional items of a row of metadata of version 6. Unknown kinds are
// an error, because their size is unknown.
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
	ID       uint32 // events refer to it
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
