package swap

// Type is the layout of a field. All numbers are little-endian and nothing is
// aligned.
type Type uint8

// The types of fields.
const (
	U8      Type = iota // 1 byte
	U32                 // 4 bytes, unsigned
	I32                 // 4 bytes, two's complement
	Hex32               // 4 bytes, a mask
	U64                 // 8 bytes, unsigned
	I64                 // 8 bytes, two's complement
	Pointer             // 8 bytes, an address
	Float               // 4 bytes, IEEE single
	Double              // 8 bytes, IEEE double
	IPv4                // 4 bytes in network order
	Time                // 8 bytes: seconds and nanoseconds, in the same order as in the stream's headers
	String              // bytes up to and including a NUL
	Item                // a letter and a value: see Letters
	Items               // a U32 count and that many Items
	Sized               // bytes; the field before is their number
	Rest                // all bytes up to the end of the payload
	List                // elements; Count defines their number
)

var typeNames = [...]string{
	"u8", "u32", "i32", "hex32", "u64", "i64", "pointer", "float", "double", "ipv4", "time", "string", "item", "items", "sized", "rest", "list",
}

// String returns the name that the format page uses.
func (t Type) String() string { return typeNames[t] }

// Size returns the minimum size of a field of the type, in bytes.
func (t Type) Size() int {
	switch t {
	case U8, String, Item:
		return 1
	case U32, I32, Hex32, Float, IPv4, Items:
		return 4
	case U64, I64, Pointer, Double, Time:
		return 8
	}
	return 0
}

// Count defines where the number of elements of a List is stored.
type Count uint8

// Places of counts.
const (
	Counted   Count = iota // in a U32 before the elements
	PerCPU                 // not in the message: one element for each processor
	PerDevice              // not in the message: one for each device with an energy model
)

// Check is a condition on a field. The right layout of several is the one whose
// conditions hold.
type Check uint8

// The checks.
const (
	Any      Check = iota
	IsZero         // 0
	IsSize         // below 2^48
	IsPath         // begins with / or is N/A
	IsLoad         // 0 to 100 for each of 256 processors
	IsClock        // a frequency in kHz, 0 to 100 GHz
	IsPID          // up to 2^22
	IsMemory       // bytes, below 2^50
)

// Field is one field of a message.
type Field struct {
	Name  string
	Type  Type
	Note  string
	Count Count // of a List
	Check Check
	// Elements are the fields of an element of a List. A single field without a
	// name is the element itself.
	Elements []Field
	// If is the name of an earlier field that determines whether this one
	// exists: it does if bit Value of Is is set.
	If string
	Is uint32
	// Values lists the meanings of numbers.
	Values []Value
}

// Value is a number with a meaning.
type Value struct {
	Number int64
	Name   string
}

// Layout is an order of a message's fields.
type Layout struct {
	Name   string // empty if it is the only one
	Note   string
	Fields []Field
}

// Message describes a message, a packet of the control channel, or the
// beginning of a file.
type Message struct {
	ID   uint32
	Name string // without MSG_
	Note string
	// Tail is the name of the group of fields after the common part of a probe
	// message. The fields from Common on belong to it.
	Tail    string
	Layouts []Layout // in the order in which they are tried; none if the payload is unknown
}

// Letter is a kind of packed argument or return value.
type Letter struct {
	Letter byte
	Size   int // size of the value, or of an element, in bytes
	Array  bool
	Note   string
}

// Letters lists the letters that Items begin with.
var Letters = []Letter{
	{'b', 1, false, "bool, 0 or 1"},
	{'c', 1, false, "char"},
	{'d', 4, false, "signed number"},
	{'x', 8, false, "signed number: long, size_t"},
	{'p', 8, false, "pointer"},
	{'f', 4, false, "float"},
	{'w', 8, false, "double"},
	{'s', 0, false, "string up to and with a NUL"},
	{'v', 0, false, "nothing: the function returns void"},
	{'n', 0, false, "nothing: no value"},
	{'D', 4, true, "array of 4-byte numbers: pointer u64, count u32, elements"},
	{'F', 4, true, "array of floats, likewise"},
	{'W', 8, true, "array of doubles, likewise"},
}

// LookupLetter returns the letter, or nil.
func LookupLetter(c byte) *Letter {
	for i := range Letters {
		if Letters[i].Letter == c {
			return &Letters[i]
		}
	}
	return nil
}
