package swap

// Type is how a field is laid out. All numbers are little-endian and nothing is
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
	Time                // 8 bytes: seconds and nanoseconds, in the order of the stream's headers
	String              // bytes up to and with a NUL
	Item                // a letter and a value: see Letters
	Items               // a U32 count and that many Items
	Sized               // as many bytes as the field before says
	Rest                // all bytes up to the end of the payload
	List                // elements one after the other; Count says how many
)

var typeNames = [...]string{
	"u8", "u32", "i32", "hex32", "u64", "i64", "pointer", "float", "double", "ipv4", "time", "string", "item", "items", "sized", "rest", "list",
}

// String returns the name that the format page uses.
func (t Type) String() string { return typeNames[t] }

// Size returns how many bytes a field of the type has, at least.
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

// Count says where the number of elements of a List stands.
type Count uint8

// Where counts stand.
const (
	Counted   Count = iota // in a U32 before the elements
	PerCPU                 // nowhere in the message: one element for each processor
	PerDevice              // nowhere in the message: one for each device with an energy model
)

// Check is what a field must be for a layout to be the right one of several.
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
	// Elements are the fields of an element of a List. One without a name is the
	// element itself.
	Elements []Field
	// If names an earlier field on which it depends whether this one is there:
	// it is if bit Value of Is is set.
	If string
	Is uint32
	// Values names what the numbers mean.
	Values []Value
}

// Value is a number with a meaning.
type Value struct {
	Number int64
	Name   string
}

// Layout is one order of a message's fields.
type Layout struct {
	Name   string // empty if there is one only
	Note   string
	Fields []Field
}

// Message describes a message, a packet of the control channel, or the beginning of
// a file.
type Message struct {
	ID   uint32
	Name string // without MSG_
	Note string
	// Tail is the name of the group of fields that follow the common part of a
	// probe message; Fields from Common on belong to it.
	Tail    string
	Layouts []Layout // in the order in which they are tried; none: the payload is not known
}

// Letter is a kind of packed argument or return value.
type Letter struct {
	Letter byte
	Size   int // bytes of the value, or of an element
	Array  bool
	Note   string
}

// Letters lists the letters that begin an Item.
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
