package swap

// common holds the first fields of all probe messages.
var common = []Field{
	{Name: "api_id", Type: U32, Note: "number of the function; see Functions"},
	pid, tid, args, result,
	{Name: "errno", Type: U64},
	{Name: "call_type", Type: I32, Note: "see Call types"},
	{Name: "caller", Type: Pointer, Note: "return address; 0xbadbeef if unknown"},
	{Name: "reserved1", Type: U32, Note: "0"},
	{Name: "reserved2", Type: U32, Note: "0"},
}

// Common is the number of the first fields that all probe messages have.
var Common = len(common)

// probe returns a probe message.
func probe(id uint32, name, note, tail string, fields ...Field) Message {
	all := append(append([]Field(nil), common...), fields...)
	m := Message{ID: id, Name: name, Note: note, Tail: tail, Layouts: []Layout{{Fields: all}}}
	if len(fields) > 0 {
		m.Layouts = append(m.Layouts, Layout{Name: "bare", Note: "the document shows no more", Fields: common})
	}
	return m
}

// Types of calls in memory probes.
const (
	MemoryAlloc  = 0
	MemoryFree   = 1
	MemoryManage = 2
)

// probes lists the probe messages. No version of the document describes their
// tails; these are those of the public probe library.
var probes = []Message{
	probe(ProbeMemory, "PROBE_MEMORY", "a call of the allocator", "memory",
		Field{Name: "size", Type: U64, Note: "bytes"},
		Field{Name: "api_type", Type: U32, Values: []Value{{MemoryAlloc, "alloc"}, {MemoryFree, "free"}, {MemoryManage, "manage (memset and the like)"}}},
		Field{Name: "address", Type: Pointer, Note: "0 if it failed"},
	),
	probe(ProbeUIControl, "PROBE_UICONTROL", "a widget was made, until 2016", "uicontrol",
		Field{Name: "type", Type: String}, Field{Name: "name", Type: String}, Field{Name: "object", Type: Pointer}),
	probe(ProbeUIEvent, "PROBE_UIEVENT", "the user did something", "uievent",
		Field{Name: "event", Type: U32, Values: []Value{{1, "key"}, {2, "touch"}, {4, "orientation"}}, Note: "6 to 14 are gestures"},
		Field{Name: "detail", Type: U32, Note: "of a key 0 press, 1 release; of a touch 0 press, 1 long, 2 release, 3 move"},
		Field{Name: "x", Type: U32}, Field{Name: "y", Type: U32}, Field{Name: "info1", Type: String}, Field{Name: "info2", Type: U32}),
	probe(ProbeFile, "PROBE_FILE", "a call that uses a file", "file",
		Field{Name: "size", Type: I64, Note: "bytes moved; -1 on failure"},
		Field{Name: "fd", Type: I64},
		Field{Name: "api_type", Type: U32, Values: fileEvents},
		Field{Name: "file_size", Type: U64, Note: "bytes"},
		Field{Name: "path", Type: String}),
	probe(ProbeLifecycle, "PROBE_LIFECYCLE", "the application begins, pauses, ends", ""),
	probe(ProbeScreenshot, "PROBE_SCREENSHOT", "a picture was taken", "screenshot",
		Field{Name: "path", Type: String}, Field{Name: "orientation", Type: U32, Note: "degrees"}),
	probe(ProbeScene, "PROBE_SCENE", "the application shows another scene, until 2016", "scene",
		Field{Name: "name", Type: String}, Field{Name: "form", Type: String}, Field{Name: "form_object", Type: Pointer},
		Field{Name: "panel", Type: String}, Field{Name: "panel_object", Type: Pointer},
		Field{Name: "transition", Type: U64}, Field{Name: "user", Type: U64}),
	probe(ProbeThread, "PROBE_THREAD", "a call about threads", "thread",
		Field{Name: "pthread_id", Type: Pointer}, Field{Name: "tizen_thread_id", Type: Pointer},
		Field{Name: "thread_type", Type: U32, Values: []Value{{0, "pthread"}, {1, "worker"}, {2, "event driven"}}},
		Field{Name: "api_type", Type: U32, Values: []Value{
			{0, "new"}, {1, "start"}, {2, "stop"}, {3, "exit"}, {4, "wait start"}, {5, "wait end"}, {6, "internal start"}, {7, "internal stop"}, {8, "other"},
		}},
		Field{Name: "class_name", Type: String}),
	probe(ProbeCustom, "PROBE_CUSTOM", "a value for a chart, from the program", "custom",
		Field{Name: "handle", Type: U32}, Field{Name: "type", Type: U32}, Field{Name: "name", Type: String},
		Field{Name: "color", Type: U32}, Field{Name: "value", Type: Double}),
	probe(ProbeSync, "PROBE_SYNC", "a call that synchronises threads", "sync",
		Field{Name: "object", Type: Pointer},
		Field{Name: "sync_type", Type: U32, Values: []Value{
			{0, "mutex of Tizen"}, {1, "monitor"}, {2, "semaphore"}, {3, "pthread mutex"}, {4, "condition"}, {5, "rwlock"}, {6, "spinlock"}, {7, "barrier"},
		}},
		Field{Name: "api_type", Type: U32, Values: []Value{
			{0, "new"},
			{1, "acquire wait start"},
			{2, "acquire wait end"},
			{3, "release"},
			{4, "try"},
			{5, "condition wait start"},
			{6, "condition wait end"},
			{7, "notify"},
			{8, "notify all"},
			{9, "other"},
		}}),
	probe(ProbeNetwork, "PROBE_NETWORK", "a call that uses a socket", "network",
		Field{Name: "object", Type: Pointer, Note: "0"}, Field{Name: "fd", Type: I64},
		Field{Name: "api_type", Type: U32, Values: networkCalls, Note: "14 to 23 are of Tizen's HTTP"},
		Field{Name: "ip", Type: IPv4, Note: "0.0.0.0 for other families"}, Field{Name: "port", Type: U32},
		Field{Name: "total_size", Type: I64}, Field{Name: "data", Type: Rest, Note: "at most 1024 bytes, without a count of its own"}),
	probe(ProbeGLES20, "PROBE_GLES20", "a call of OpenGL ES", "gles20",
		Field{Name: "context", Type: Pointer, Note: "0"},
		Field{Name: "api_type", Type: U32, Values: []Value{{0, "init"}, {1, "with a context"}, {2, "without a context"}}},
		Field{Name: "elapsed", Type: U64, Note: "ns"}, Field{Name: "context_value", Type: String}),
}

var networkCalls = []Value{
	{0, "open"},
	{1, "close"},
	{2, "receive start"},
	{3, "receive end"},
	{4, "send start"},
	{5, "send end"},
	{6, "bind"},
	{7, "listen"},
	{8, "connect"},
	{9, "accept start"},
	{10, "accept end"},
	{11, "event wait start"},
	{12, "event wait end"},
	{13, "other"},
}
