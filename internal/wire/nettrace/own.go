package nettrace

// What ProviderOwn writes. Its events hold all that a trace has, so that a stream
// in which it occurs is read from them alone: the events of ProviderSystem and
// ProviderRuntime in such a stream repeat it for other readers.
//
// All events are written by one capturing thread, and their times never go back:
// the order in the stream is that of the trace. Thread is the thread of the
// record, 0 if unknown, Processor its CPU, OwnNoProcessor if unknown.
//
// Strings keep any bytes: UTF-8 becomes UTF-16, and a byte b that is none, or is
// 0, the unit OwnEscape+b, which is never the second half of a pair.

// OwnEscape is added to a byte that is no text.
const OwnEscape = 0xdc00

// OwnNoProcessor stands for a CPU that is not known.
const OwnNoProcessor = 0xffffffff

// OwnVersion and OwnLevel are those of all metadata of ours.
const (
	OwnVersion = 1
	OwnLevel   = 4
)

// Keywords of the metadata of calls. Events without one of the lower four are
// records of other kinds, of OwnRecords. The bits above 32 are the number of the
// resource.
const (
	OwnAlloc = 1 << iota // the operations of a call
	OwnFree
	OwnMove
	OwnUndefined // a call of no known operation
	OwnNamed     // the event has the name of the traced function; else that has none, or is in the field Function

	OwnCall          = OwnAlloc | OwnFree | OwnMove | OwnUndefined
	OwnResourceShift = 32
)

// Fields of calls. A call has those that its metadata names; the value of a field
// that is missing is 0 or empty unless it says otherwise here. Event ids of calls
// mean nothing.
const (
	OwnAddress    = "Address"    // UInt64: id of the resource
	OwnOldAddress = "OldAddress" // UInt64: what ended
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
	OwnFunction   = "Function"   // String: the traced function, if the event is not named so
)

// OwnStack is the event that tells more of its stack, which its head names, in
// front of the first call that has it behind a sequence point. Missing: a stack
// with frames is complete, one without is absent, and no names are known.
//
// There may be several of one stack: names and frames of each are behind those of
// the one before. If there are frames, they are the stack, instead of what the
// block of stacks has.
const (
	OwnStackName = "Stack"
	OwnStackID   = 0xfffe // event id

	OwnEnd          = "End"          // Byte: as trace.StackEnd counts them
	OwnFramePointer = "FramePointer" // Boolean32
	OwnReason       = "Reason"       // String
	OwnNames        = "Names"        // String: a text and a line end for each frame; \ stands in front of \, n (a line end) and t (a tab) of a text
	OwnFrames       = "Frames"       // String: hexadecimal, a blank behind each
)

// OwnRecord says how records of a kind are written that is not a call.
type OwnRecord struct {
	Kind   string // as trace.Kind has it
	Name   string // of the event
	Fields []Field
}

// OwnRecordID is the event id of the first row of OwnRecords; the others follow.
const OwnRecordID = 0xff00

// OwnRecords are the records that are not calls. In front of the fields that the
// table names, each has Time (Int64: ns) and ProcessID (Int32).
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
	// The numbers of events skip Count, but at most OwnMaxGap, in front of it.
	{"lost", "Lost", []Field{number64("Count"), text("Reason"), signed64("Since")}},
	{"opaque", "Opaque", []Field{text("Format"), number32("ID"), text("Data")}}, // Data: hexadecimal
	{"function", "Function", []Field{text("Name"), number64("Start"), number64("End"), text("Module")}},
	// The stack of these two is that of the event, as with calls; Arguments are as
	// theirs, Data is hexadecimal.
	{"sample", "Sample", []Field{text("Name"), number64("Weight")}},
	{"event", "Event", []Field{text("Provider"), text("Name"), number32("ID"), text("Arguments"), text("Data")}},
	{"end", "End", nil},
	{"rss", "RSS", []Field{number64("Bytes")}},
}

// OwnMaxGap is the most that the numbers of events skip at a time: more would
// look like steps back.
const OwnMaxGap = 1<<31 - 1

var mappingFields = []Field{
	number64("Start"), number64("End"), number64("Offset"), number64("Base"), text("Path"),
}

func text(name string) Field     { return Field{Name: name, Type: TypeString} }
func flag(name string) Field     { return Field{Name: name, Type: TypeBoolean32} }
func number32(name string) Field { return Field{Name: name, Type: TypeUInt32} }
func number64(name string) Field { return Field{Name: name, Type: TypeUInt64} }
func signed64(name string) Field { return Field{Name: name, Type: TypeInt64} }
