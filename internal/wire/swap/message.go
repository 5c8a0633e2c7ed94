package swap

// IDs of messages. 000F, 0016 to 0018, 001B to 001F, 0023 to 00FF, 010A to 010F
// and all from 0113 on are not assigned.
const (
	ProcessInfo        = 0x0001
	Terminate          = 0x0002
	Error              = 0x0003
	Sample             = 0x0004
	System             = 0x0005
	Image              = 0x0006
	Record             = 0x0007
	FunctionEntry      = 0x0008
	FunctionExit       = 0x0009
	SyscallEntry       = 0x000A
	SyscallExit        = 0x000B
	FileFunctionEntry  = 0x000C
	FileFunctionExit   = 0x000D
	ProcessStatusInfo  = 0x000E
	ContextSwitchEntry = 0x0010
	ContextSwitchExit  = 0x0011
	ProcessMap         = 0x0012
	ProcessUnmap       = 0x0013
	ProcessComm        = 0x0014
	WebSampling        = 0x0015
	WebFunctionExit    = 0x0016
	AppSetupStage      = 0x0019
	WebAppSetupStage   = 0x001A
	FBI                = 0x0020
	UIHierarchy        = 0x0021
	LSAN               = 0x0022

	ProbeMemory     = 0x0101
	ProbeUIControl  = 0x0102
	ProbeUIEvent    = 0x0103
	ProbeFile       = 0x0104
	ProbeLifecycle  = 0x0105
	ProbeScreenshot = 0x0106
	ProbeScene      = 0x0107
	ProbeThread     = 0x0108
	ProbeCustom     = 0x0109
	ProbeSync       = 0x0110 // not 010A: the numbers have a gap
	ProbeNetwork    = 0x0111
	ProbeGLES20     = 0x0112

	// Private IDs, which no other writer uses. Readers skip unknown messages.
	FirstPrivate = 0x7F00
	Stack        = 0x7F01
	APIName      = 0x7F02
	End          = 0x7F03
)

// Numbers of the layouts that are not the first of their message.
const (
	StatusKernel41 = 1
	StatusKernel42 = 2
)

// LSANReport is the status of LSAN with the name of a report.
const LSANReport = 2

var (
	pid    = Field{Name: "pid", Type: U32}
	tid    = Field{Name: "tid", Type: U32}
	cpu    = Field{Name: "cpu", Type: U32}
	pc     = Field{Name: "pc", Type: Pointer}
	caller = Field{Name: "caller_pc", Type: Pointer, Note: "return address of the call"}
	low    = Field{Name: "low", Type: Pointer}
	high   = Field{Name: "high", Type: Pointer}
	args   = Field{Name: "args", Type: Items}
	result = Field{Name: "return", Type: Item}
)

// unnamed returns the only layout of a message.
func unnamed(fields ...Field) []Layout { return []Layout{{Fields: fields}} }

// Messages lists all known messages.
var Messages = append([]Message{
	{ID: ProcessInfo, Name: "PROCESS_INFO", Note: "a traced process and its executable mappings", Layouts: unnamed(
		pid,
		Field{Name: "command_name", Type: String, Note: "task name of 15 bytes at most; we write the command line except in the kernel's dialect"},
		Field{Name: "ppid", Type: U32, Note: "parent"},
		Field{Name: "start_time", Type: Time, Note: "when the process began; 0 if unknown"},
		Field{Name: "low", Type: Pointer, Note: "of the program; 0 if not found"},
		high,
		Field{Name: "binary_path", Type: String, Note: "N/A if not found"},
		Field{Name: "libraries", Type: List, Elements: []Field{low, high, {Name: "path", Type: String}}},
	)},
	{ID: Terminate, Name: "TERMINATE", Note: "the process ended", Layouts: []Layout{
		{Name: "new", Note: "newer text and all writers", Fields: []Field{{Name: "pid", Type: U32, Note: "leader of the thread group"}}},
		{Name: "old", Note: "older text", Fields: []Field{{Name: "type", Type: U32}, pid}},
	}},
	{ID: Error, Name: "ERROR", Note: "a problem of the tracer", Layouts: unnamed(Field{Name: "message", Type: String})},
	{ID: Sample, Name: "SAMPLE", Note: "where a thread was", Layouts: unnamed(pid, pc, tid, cpu)},
	{ID: System, Name: "SYSTEM", Note: "state of the whole machine", Layouts: systemLayouts},
	{ID: Image, Name: "IMAGE", Note: "in the older text's list only, without fields; no writer is known"},
	{ID: Record, Name: "RECORD", Note: "input events, for a replay; in the older text only", Layouts: unnamed(
		Field{Name: "events", Type: List, Elements: []Field{
			{Name: "id", Type: U32}, {Name: "type", Type: U32}, {Name: "code", Type: U32}, {Name: "value", Type: U32},
		}},
	)},
	{ID: FunctionEntry, Name: "FUNCTION_ENTRY", Note: "a function was called", Layouts: unnamed(pid, tid,
		Field{Name: "pc", Type: Pointer, Note: "start of the function, which identifies it"}, caller, cpu, args)},
	{ID: FunctionExit, Name: "FUNCTION_EXIT", Note: "it returned", Layouts: unnamed(pid, tid, pc, caller, cpu, result)},
	{ID: SyscallEntry, Name: "SYSCALL_ENTRY", Note: "a system call began", Layouts: unnamed(pid, tid, probeType,
		Field{Name: "pc", Type: Pointer, Note: "of the kernel's function"}, caller, cpu, args)},
	{ID: SyscallExit, Name: "SYSCALL_EXIT", Note: "it returned; always an x", Layouts: unnamed(pid, tid, probeType, pc, caller, cpu, result)},
	{ID: FileFunctionEntry, Name: "FILE_FUNCTION_ENTRY", Note: "another process uses a file of the target", Layouts: unnamed(pid, tid,
		Field{Name: "fd", Type: I32},
		Field{Name: "event_type", Type: U32, Values: fileEvents},
		Field{Name: "real_path", Type: String},
		Field{Name: "args_type", Type: U32, Values: []Value{{0, "none"}, {1, "open"}, {2, "lock"}}},
		Field{Name: "open_path", Type: String, If: "args_type", Is: 1 << 1, Note: "as the program gave it"},
		Field{Name: "lock_type", Type: U32, If: "args_type", Is: 1 << 2, Values: []Value{{0, "F_RDLCK"}, {1, "F_WRLCK"}, {2, "F_UNLCK"}}},
		Field{Name: "lock_whence", Type: U32, If: "args_type", Is: 1 << 2, Values: []Value{{0, "SEEK_SET"}, {1, "SEEK_CUR"}, {2, "SEEK_END"}}},
		Field{Name: "lock_start", Type: I64, If: "args_type", Is: 1 << 2},
		Field{Name: "lock_length", Type: I64, If: "args_type", Is: 1 << 2},
	)},
	{ID: FileFunctionExit, Name: "FILE_FUNCTION_EXIT", Note: "it is done; always an x", Layouts: unnamed(pid, tid, result)},
	{ID: ProcessStatusInfo, Name: "PROCESS_STATUS_INFO", Note: "open files of a process that runs already", Layouts: statusLayouts},
	{ID: ContextSwitchEntry, Name: "CONTEXT_SWITCH_ENTRY", Note: "the thread leaves the processor", Layouts: unnamed(
		Field{Name: "pc", Type: Pointer, Note: "0 from the kernel's writer"}, pid, tid, cpu)},
	{ID: ContextSwitchExit, Name: "CONTEXT_SWITCH_EXIT", Note: "it runs again", Layouts: unnamed(pc, pid, tid, cpu)},
	{ID: ProcessMap, Name: "PROCESS_MAP", Note: "an executable mapping appeared", Layouts: unnamed(pid,
		Field{Name: "low", Type: Pointer, Note: "address of file offset 0, so that pc - low is the offset in the file"}, high,
		Field{Name: "path", Type: String})},
	{ID: ProcessUnmap, Name: "PROCESS_UNMAP", Note: "it is gone", Layouts: unnamed(pid,
		Field{Name: "low", Type: Pointer, Note: "we repeat the bounds of the mapping that it ends"}, high)},
	{ID: ProcessComm, Name: "PROCESS_COMM", Note: "the process has another name; no field table in either text", Layouts: unnamed(pid,
		Field{Name: "comm", Type: String})},
	{ID: WebSampling, Name: "WEB_SAMPLING", Note: "where a script was", Layouts: []Layout{
		{Name: "sampling", Fields: []Field{
			{Name: "subtype", Type: U8, Check: IsZero, Note: "0"},
			{Name: "pid", Type: U32, Check: IsPID},
			{Name: "tid", Type: U32, Check: IsPID},
			{Name: "line", Type: U32},
			{Name: "function", Type: String},
			{Name: "url", Type: String},
		}},
		{Name: "entry", Note: "until 2016 this was WEB_FUNCTION_ENTRY", Fields: []Field{
			pid, tid, {Name: "line", Type: U32}, {Name: "function", Type: String}, {Name: "url", Type: String},
		}},
	}},
	{ID: WebFunctionExit, Name: "WEB_FUNCTION_EXIT", Note: "until 2016", Layouts: unnamed(pid, tid, Field{Name: "function", Type: String})},
	{ID: AppSetupStage, Name: "APP_SETUP_STAGE", Note: "how long a stage of the start took", Layouts: unnamed(pid,
		Field{Name: "stage", Type: U32, Values: []Value{{0, "library mapping"}, {1, "main"}, {2, "create"}, {3, "service"}}},
		Field{Name: "begin", Type: Time}, Field{Name: "end", Type: Time})},
	{ID: WebAppSetupStage, Name: "WEB_APP_SETUP_STAGE", Note: "a stage of the start of a web application", Layouts: unnamed(pid,
		Field{Name: "wsp_id", Type: U32, Values: []Value{
			{1, "resource load begin"},
			{2, "resource load end"},
			{3, "resource processing begin"},
			{4, "resource processing end"},
			{5, "draw begin"},
			{6, "draw end"},
		}},
		Field{Name: "res_id", Type: U32, If: "wsp_id", Is: 1<<1 | 1<<2 | 1<<3 | 1<<4},
		Field{Name: "path", Type: String, If: "wsp_id", Is: 1 << 1})},
	{ID: FBI, Name: "FBI", Note: "a variable within a function, without the process", Layouts: unnamed(
		Field{Name: "variable_id", Type: U32},
		Field{Name: "size", Type: U32, Note: "bytes; 0 if it could not be read"},
		Field{Name: "data", Type: Sized})},
	{ID: UIHierarchy, Name: "UI_HIERARCHY", Note: "names a file; see UI hierarchy file", Layouts: unnamed(Field{Name: "file_path", Type: String})},
	{ID: LSAN, Name: "LSAN", Note: "from a leak sanitizer; no writer is known", Layouts: unnamed(
		Field{Name: "status", Type: I32, Values: []Value{{0, "error"}, {1, "status"}, {LSANReport, "report"}, {4, "init done"}, {5, "init done, as the prose has it"}}},
		pid,
		Field{Name: "message", Type: String, Note: "of status 2 the name of the report"},
		Field{Name: "call_type", Type: I32, Note: "0"},
		Field{Name: "caller", Type: Pointer, Note: "0"})},
	{ID: Stack, Name: "STACK", Note: "ours: the whole stack of the message before it", Layouts: unnamed(
		Field{Name: "sequence", Type: U32, Note: "number of that message"},
		Field{Name: "frames", Type: List, Note: "return addresses, innermost first", Elements: []Field{{Type: Pointer}}})},
	{ID: APIName, Name: "API_NAME", Note: "ours: the name of a function that is in no table, before its first call", Layouts: unnamed(
		Field{Name: "api_id", Type: U32}, Field{Name: "name", Type: String})},
	{ID: End, Name: "END", Note: "ours: announced by the first message, reached by the last", Layouts: unnamed(
		Field{Name: "reached", Type: U32, Values: []Value{{0, "announced"}, {1, "reached"}}})},
}, probes...)

var probeType = Field{Name: "probe_type", Type: Hex32, Values: []Value{
	{0x01, "file"}, {0x02, "ipc"}, {0x04, "process"}, {0x08, "signal"}, {0x10, "network"}, {0x20, "descriptor"},
}}

// fileEvents lists the values of FILE_FUNCTION_ENTRY and PROBE_FILE.
var fileEvents = []Value{
	{0, "open"},
	{1, "close"},
	{2, "read start"},
	{3, "read end"},
	{4, "write start"},
	{5, "write end"},
	{6, "directory"},
	{7, "permission"},
	{8, "other"},
	{9, "send"},
	{10, "receive"},
	{11, "option"},
	{12, "manage"},
	{14, "lock start"},
	{15, "lock end"},
	{16, "lock release"},
}

// Lookup returns the message with that ID, or nil.
func Lookup(id uint32) *Message {
	if i := id; i < uint32(len(index)) && index[i] != 0 {
		return &Messages[index[i]-1]
	}
	for i := range Messages {
		if Messages[i].ID == id {
			return &Messages[i]
		}
	}
	return nil
}

// index finds messages with small IDs quickly. It holds their numbers in
// Messages plus one.
var index = func() (x [0x120]uint8) {
	for i := range Messages {
		if id := Messages[i].ID; id < uint32(len(x)) {
			x[id] = uint8(i + 1)
		}
	}
	return x
}()

// LookupName returns the message with that name, or nil.
func LookupName(name string) *Message {
	for i := range Messages {
		if Messages[i].Name == name {
			return &Messages[i]
		}
	}
	return nil
}
