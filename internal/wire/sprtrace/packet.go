package sprtrace

// Type is the layout of a field.
type Type uint8

// The types of fields.
const (
	Dword   Type = iota // 4 bytes, unsigned
	Signed              // 4 bytes, two's complement
	Hex                 // 4 bytes, a mask or version to show in hexadecimal
	Pointer             // 4 or 8 bytes, depending on the handshake; aligned to 4 only
	String              // 2 bytes length, text, zero padding to a multiple of 4
	Frames              // a Dword count and that many Pointers
	Pairs               // a Dword count and that many pairs of Strings: name, value
	Texts               // a Dword count and that many Strings
)

var typeNames = [...]string{"dword", "signed", "hex", "pointer", "string", "frames", "pairs", "texts"}

// String returns the name that the format page uses.
func (t Type) String() string { return typeNames[t] }

// Field is one field of a packet.
type Field struct {
	Name  string
	Type  Type
	Since Version // first version with it; 0 for all
	Note  string
}

// Layout is an order of a packet's fields.
type Layout struct {
	Name   string // empty for the layout of real writers from 1.3 on
	Note   string
	Fields []Field
}

// Letters returns the four bytes of a code, first letter first.
func Letters(code uint32) string {
	return string([]byte{byte(code), byte(code >> 8), byte(code >> 16), byte(code >> 24)})
}

// Packet describes one packet type.
type Packet struct {
	Name    string // the four letters
	Code    uint32 // the letters as a little-endian number
	Since   Version
	Note    string
	Layouts []Layout // the first is the usual one
}

// Type codes: the four letters as a little-endian number.
const (
	PINF = 'P' | 'I'<<8 | 'N'<<16 | 'F'<<24
	MINF = 'M' | 'I'<<8 | 'N'<<16 | 'F'<<24
	RESR = 'R' | 'E'<<8 | 'S'<<16 | 'R'<<24
	CTXR = 'C' | 'T'<<8 | 'X'<<16 | 'R'<<24
	MMAP = 'M' | 'M'<<8 | 'A'<<16 | 'P'<<24
	CALL = 'C' | 'A'<<8 | 'L'<<16 | 'L'<<24
	ARGS = 'A' | 'R'<<8 | 'G'<<16 | 'S'<<24
	BTRC = 'B' | 'T'<<8 | 'R'<<16 | 'C'<<24
	FILE = 'F' | 'I'<<8 | 'L'<<16 | 'E'<<24
	HINF = 'H' | 'I'<<8 | 'N'<<16 | 'F'<<24
	OCFG = 'O' | 'C'<<8 | 'F'<<16 | 'G'<<24
	NLIB = 'N' | 'L'<<8 | 'I'<<16 | 'B'<<24
)

// Numbers of the layouts that are not the first of their packet.
const (
	CallDocument = 1 // CALL in the order of the protocol document
	ArgsTexts    = 1 // ARGS before 1.3
	HeapNarrow   = 1 // HINF of 64-bit writers
)

// mallinfo lists the fields of HINF that follow the bounds.
var mallinfo = []Field{
	{Name: "arena", Type: Dword, Note: "bytes got from the system, not mapped"},
	{Name: "ordblks", Type: Dword, Note: "free chunks"},
	{Name: "smblks", Type: Dword, Note: "free fastbin blocks"},
	{Name: "hblks", Type: Dword, Note: "mapped regions"},
	{Name: "hblkhd", Type: Dword, Note: "bytes in mapped regions"},
	{Name: "usmblks", Type: Dword, Note: "most bytes ever allocated"},
	{Name: "fsmblks", Type: Dword, Note: "bytes in free fastbin blocks"},
	{Name: "uordblks", Type: Dword, Note: "bytes allocated"},
	{Name: "fordblks", Type: Dword, Note: "bytes free"},
	{Name: "keepcost", Type: Dword, Note: "bytes that trimming could release"},
}

// Packets lists all packet types.
var Packets = []Packet{
	{
		Name: "PINF", Code: PINF, Note: "the traced process",
		Layouts: []Layout{{Fields: []Field{
			{Name: "pid", Type: Dword},
			{Name: "secs", Type: Dword, Note: "start of tracing, seconds since 1970"},
			{Name: "usecs", Type: Dword, Note: "microseconds part of it"},
			{Name: "depth", Type: Signed, Since: V12, Note: "frames asked for; -1 unknown"},
			{Name: "name", Type: String, Note: "first word of the command line"},
		}}},
	},
	{
		Name: "MINF", Code: MINF, Note: "an active tracing module",
		Layouts: []Layout{{Fields: []Field{
			{Name: "id", Type: Hex, Note: "0 for the main module, else one bit"},
			{Name: "version", Type: Hex, Note: "major<<16 | minor"},
			{Name: "name", Type: String},
		}}},
	},
	{
		Name: "RESR", Code: RESR, Note: "a kind of resource",
		Layouts: []Layout{{Fields: []Field{
			{Name: "id", Type: Dword, Note: "1 to 32; a number, not a bit"},
			{Name: "flags", Type: Hex, Since: V13, Note: "1: reference counted"},
			{Name: "type", Type: String},
			{Name: "desc", Type: String},
		}}},
	},
	{
		Name: "CTXR", Code: CTXR, Note: "a named phase of the program",
		Layouts: []Layout{{Fields: []Field{
			{Name: "id", Type: Hex, Note: "one bit"},
			{Name: "name", Type: String},
		}}},
	},
	{
		Name: "MMAP", Code: MMAP, Note: "an executable mapping",
		Layouts: []Layout{{Fields: []Field{
			{Name: "from", Type: Pointer},
			{Name: "to", Type: Pointer},
			{Name: "path", Type: String},
		}}},
	},
	{
		Name: "CALL", Code: CALL, Note: "a traced call",
		Layouts: []Layout{
			{Fields: []Field{
				{Name: "resource", Type: Dword, Note: "id of a RESR; 0 if there is none"},
				{Name: "context", Type: Hex, Note: "mask of CTXR ids"},
				{Name: "timestamp", Type: Dword, Note: "ms of CLOCK_MONOTONIC modulo 24 h; 0 none"},
				{Name: "type", Type: Dword, Note: "0 undefined, 1 free, 2 allocation"},
				{Name: "name", Type: String, Note: "function"},
				{Name: "size", Type: Signed, Note: "0 for frees"},
				{Name: "id", Type: Pointer, Note: "address, file descriptor, hash …"},
			}},
			{Name: "document", Note: "the order of the protocol document", Fields: []Field{
				{Name: "timestamp", Type: Dword},
				{Name: "resource", Type: Dword, Note: "0 if only one kind is traced"},
				{Name: "context", Type: Hex},
				{Name: "type", Type: Dword},
				{Name: "name", Type: String},
				{Name: "id", Type: Pointer},
				{Name: "size", Type: Signed},
			}},
		},
	},
	{
		Name: "ARGS", Code: ARGS, Note: "arguments of the call before it",
		Layouts: []Layout{
			{Fields: []Field{{Name: "args", Type: Pairs}}},
			{Name: "texts", Note: "before 1.3: one text per argument", Fields: []Field{{Name: "texts", Type: Texts}}},
		},
	},
	{
		Name: "BTRC", Code: BTRC, Note: "stack of the call before it",
		Layouts: []Layout{{Fields: []Field{
			{Name: "frames", Type: Frames, Note: "return addresses, innermost first"},
		}}},
	},
	{
		Name: "FILE", Code: FILE, Since: V14, Note: "a file that belongs to the trace",
		Layouts: []Layout{{Fields: []Field{
			{Name: "name", Type: String},
			{Name: "path", Type: String},
		}}},
	},
	{
		Name: "HINF", Code: HINF, Note: "state of the heap",
		Layouts: []Layout{
			{Fields: append([]Field{{Name: "bottom", Type: Pointer}, {Name: "top", Type: Pointer}}, mallinfo...)},
			{Name: "narrow", Note: "64-bit writers cut both pointers to 32 bits: 48 bytes instead of 56", Fields: append([]Field{{Name: "bottom32", Type: Hex}, {Name: "top32", Type: Hex}}, mallinfo...)},
		},
	},
	{
		Name: "OCFG", Code: OCFG, Note: "output settings; no reader needs them",
		Layouts: []Layout{{Fields: []Field{
			{Name: "dir", Type: String},
			{Name: "options", Type: String},
		}}},
	},
	{
		Name: "NLIB", Code: NLIB, Note: "a library was loaded; from module to pre-processor, not in files",
		Layouts: []Layout{{Fields: []Field{{Name: "name", Type: String}}}},
	},
}

// Buggy returns the code in tools 1.0 and 1.1, with the second letter instead
// of the third and fourth; 0 if they did not have the packet.
func (p *Packet) Buggy() uint32 {
	if p.Since >= V12 {
		return 0
	}
	first, second := p.Code&0xff, p.Code>>8&0xff
	return first | second<<8 | second<<16 | second<<24
}

// Lookup returns the packet with that code, or nil.
func Lookup(code uint32) *Packet {
	for i := range Packets {
		if Packets[i].Code == code {
			return &Packets[i]
		}
	}
	return nil
}

// LookupBuggy returns the packet with that code in tools 1.0 and 1.1, or nil.
func LookupBuggy(code uint32) *Packet {
	for i := range Packets {
		if Packets[i].Buggy() == code && code != 0 {
			return &Packets[i]
		}
	}
	return nil
}

// LookupName returns the packet with those four letters, or nil.
func LookupName(name string) *Packet {
	for i := range Packets {
		if Packets[i].Name == name {
			return &Packets[i]
		}
	}
	return nil
}
