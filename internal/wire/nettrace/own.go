package nettrace

// ProviderOwn writes events that contain all of a trace. A stream with these
// events is decoded from them alone; the events of ProviderSystem and
// ProviderRuntime in such a stream repeat the information for other readers.
//
// All events are written by one capturing thread, and their times never go
// back: the order in the stream is that of the trace. Thread is the thread of
// the record, 0 if unknown. Processor is its CPU, or OwnNoProcessor if unknown.
//
// Strings preserve any bytes: UTF-8 becomes UTF-16, and a byte b that is not
// part of UTF-8, or is 0, becomes the unit OwnEscape+b, which is never the
// second half of a pair.

// OwnEscape is added to a byte that is not text.
const OwnEscape = 0xdc00

// OwnNoProcessor stands for an unknown CPU.
const OwnNoProcessor = 0xffffffff

// OwnVersion and OwnLevel are the version and level in all metadata of
// ProviderOwn.
const (
	OwnVersion = 1
	OwnLevel   = 4
)

// Keywords of the metadata of calls. Events without one of the lower four are
// records of other kinds, in OwnRecords. The bits from 32 on are the number of
// the resource.
const (
	OwnAlloc = 1 << iota // the operations of a call
	OwnFree
	OwnMove
	OwnUndefined // a call with an unknown operation
	OwnNamed     // the event's name is the traced function; otherwise that is empty, or in the field Function

	OwnCall          = OwnAlloc | OwnFree | OwnMove | OwnUndefined
	OwnResourceShift = 32
)

// Fields of calls. A call has the fields that its metadata lists. Missing
// fields are 0 or empty unless noted otherwise. The event IDs of calls have no
// meaning.
const (
	OwnAddress    = "Address"    // UInt64: id of the resource
	OwnOldAddress = "OldAddress" // UInt64: id of the block that ended
	OwnSize       = "Size"       // UInt64
	OwnEntryTime  = "EntryTime"  // Int64: when a move began
	OwnTime       = "Time"       // Int64: ns; missing: that of the event
	OwnProcess    = "ProcessID"  // Int32; missing: that of the trace, in version 6 of the thread
	OwnSequence   = "Sequence"   // UInt64; missing: one more than the call before, the first is 1
	OwnContext    = "Context"    // UInt32
	OwnIndex      = "Index"      // UInt64
	OwnThread     = "Thread"     // UInt64: as the format of the trace identifies it
	OwnCaller     = "Caller"     // String: function of the caller
	OwnFile       = "File"       // String: its source file
	OwnLine       = "Line"       // UInt64: its line
	OwnArguments  = "Arguments"  // String: name, tab, value, line end of each; see OwnStackName
	OwnFunction   = "Function"   // String: the traced function, if it is not the event's name
)

// The event OwnStackName has further properties of its stack, which its header
// refers to. It precedes the first call with that stack after a sequence point.
// Without it, a stack with frames is complete, one without frames is absent,
// and its names are unknown.
//
// There may be several of these events for one stack: their names and frames
// are concatenated. If there are frames, they replace those in the block of
// stacks.
const (
	OwnStackName = "Stack"
	OwnStackID   = 0xfffe // event ID

	OwnEnd          = "End"          // Byte: a trace.StackEnd
	OwnFramePointer = "FramePointer" // Boolean32
	OwnReason       = "Reason"       // String
	OwnNames        = "Names"        // String: a text and a line break for each frame; \ stands before \, n (a line break) and t (a tab) in a text
	OwnFrames       = "Frames"       // String: hexadecimal, each followed by a blank
)

// OwnRecord defines the event for a kind of record that is not a call.
type OwnRecord struct {
	Kind   string // name of the trace.Kind
	Name   string // name of the event
	Fields []Field
}

// OwnRecordID is the event ID of the first row of OwnRecords; the others
// follow.
const OwnRecordID = 0xff00

// OwnRecords lists the records that are not calls. Each event has Time (Int64:
// ns) and ProcessID (Int32) before the listed fields.
var OwnRecords = [...]OwnRecord{
	{"header", "Header", []Field{
		text("Format"), text("Version"), text("Arch"), flag("BigEndian"), number32("PointerSize"), number32("Clock"),
		signed64("WallTime"), signed64("ClockTime"), text("Filter"), text("Origin"), flag("Ends"),
	}},
	{"process", "Process", []Field{
		text("Name"), signed64("WallTime"), {Name: "Depth", Type: TypeInt32}, number32("Parent"), signed64("Started"), text("Path"),
	}},
	{"thread", "Thread", []Field{text("Name")}},
	{"tracermodule", "TracerModule", []Field{number32("ID"), number32("Major"), number32("Minor"), text("Name")}},
	{"resource", "Resource", []Field{number32("ID"), text("Type"), text("Desc"), flag("RefCount"), flag("Sampled")}},
	{"context", "Context", []Field{number32("ID"), text("Name")}},
	{"module", "Module", []Field{
		text("Path"), text("BuildID"), number64("Inode"), number32("Major"), number32("Minor"), flag("Fixed"),
	}},
	{"mapping", "Mapping", mappingFields},
	{"unmapping", "Unmapping", mappingFields},
	{"heapgrow", "HeapGrow", []Field{number64("Address"), number64("Size"), flag("Internal")}},
	{"heapinfo", "HeapInfo", []Field{
		number64("Bottom"), number64("Top"), number64("Arena"), number64("OrdBlks"), number64("SmBlks"), number64("HBlks"), number64("HBlkHd"),
		number64("UsmBlks"), number64("FsmBlks"), number64("UordBlks"), number64("FordBlks"), number64("KeepCost"),
	}},
	{"attachment", "Attachment", []Field{text("Name"), text("Path")}},
	{"comment", "Comment", []Field{text("Text")}},
	{"exec", "Exec", []Field{text("Name")}},
	{"exit", "Exit", []Field{flag("Whole")}}, // Whole: the process ended, not a thread
	// The sequence numbers of events skip Count before this event, but at most
	// OwnMaxGap.
	{"lost", "Lost", []Field{number64("Count"), text("Reason"), signed64("Since")}},
	{"opaque", "Opaque", []Field{text("Format"), number32("ID"), text("Data")}}, // Data: hexadecimal
	{"function", "Function", []Field{text("Name"), number64("Start"), number64("End"), text("Module")}},
	// The stack of these two is that of the event, as for calls. Arguments are
	// encoded as for calls, Data is hexadecimal.
	{"sample", "Sample", []Field{text("Name"), number64("Weight")}},
	{"event", "Event", []Field{text("Provider"), text("Name"), number32("ID"), text("Arguments"), text("Data")}},
	{"end", "End", nil},
	{"rss", "RSS", []Field{number64("Bytes")}},
	{"window", "Window", []Field{
		number64("Weight"), signed64("Until"), signed64("Stretch"), signed64("Used"), signed64("Added"), number64("Doubt"),
	}},
	{"cost", "Cost", []Field{
		signed64("Used"), signed64("Added"), signed64("Tracer"), number64("Budget"), number64("Worst"), number64("Over"), signed64("Covered"), signed64("Longest"),
	}},
}

// OwnMaxGap is the largest gap in the sequence numbers of events. A larger gap
// would look like a step back.
const OwnMaxGap = 1<<31 - 1

var mappingFields = []Field{
	number64("Start"), number64("End"), number64("Offset"), number64("Base"), text("Path"),
}

func text(name string) Field     { return Field{Name: name, Type: TypeString} }
func flag(name string) Field     { return Field{Name: name, Type: TypeBoolean32} }
func number32(name string) Field { return Field{Name: name, Type: TypeUInt32} }
func number64(name string) Field { return Field{Name: name, Type: TypeUInt64} }
func signed64(name string) Field { return Field{Name: name, Type: TypeInt64} }
