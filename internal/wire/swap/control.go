package swap

// IDs of the requests of the control channel whose replies are known.
const (
	RequestVersion    = 0x01
	RequestStart      = 0x02
	RequestTargetInfo = 0x07
	RequestProbeMap   = 0x0A
)

// Controls lists the packets of the control channel. The ID of a reply is that
// of its request plus ReplyBit, and its first field is a result code. Packets
// without a layout are not decoded.
var Controls = append(append([]Message(nil), requests...), replies()...)

// requests lists the requests. The layout of those without one is unknown.
var requests = []Message{
	{ID: RequestVersion, Name: "VERSION", Layouts: unnamed()},
	{ID: RequestStart, Name: "START", Note: "what is to be probed"},
	{ID: 0x03, Name: "STOP", Layouts: unnamed()},
	{ID: 0x04, Name: "CONFIG", Layouts: unnamed(
		Field{Name: "features0", Type: Pointer, Note: "mask"}, Field{Name: "features1", Type: Pointer, Note: "mask"},
		Field{Name: "system_period", Type: U32, Note: "ms, 100 to 1000"}, Field{Name: "sampling_period", Type: U32, Note: "ms, 1 to 100"})},
	{ID: 0x05, Name: "BINARY_INFO"},
	{ID: RequestTargetInfo, Name: "GET_TARGET_INFO", Layouts: unnamed()},
	{ID: 0x08, Name: "SWAP_INST_ADD"},
	{ID: 0x09, Name: "SWAP_INST_REMOVE"},
	{ID: RequestProbeMap, Name: "GET_PROBE_MAP", Layouts: unnamed()},
	{ID: 0x0F, Name: "KEEP_ALIVE", Layouts: unnamed()},
	{ID: 0x10, Name: "GET_SCREENSHOT"},
	{ID: 0x11, Name: "GET_PROCESS_ADD_INFO"},
	{ID: 0x12, Name: "GET_UI_HIERARCHY"},
	{ID: 0x13, Name: "GET_UI_SCREENSHOT"},
	{ID: 0x14, Name: "GET_UI_CANCEL"},
	{ID: 0x20, Name: "GET_REAL_PATH"},
}

// replies returns the replies to all requests.
func replies() []Message {
	code := Field{Name: "result", Type: I32, Note: "0, or negative for an error"}
	known := map[uint32][]Field{
		RequestVersion: {{Name: "version", Type: String}},
		RequestStart:   {{Name: "start_time", Type: Time}},
		RequestTargetInfo: {
			{Name: "memory", Type: U64, Note: "bytes"},
			{Name: "storage", Type: U64, Note: "bytes"},
			{Name: "bluetooth", Type: U32},
			{Name: "gps", Type: U32},
			{Name: "wifi", Type: U32},
			{Name: "camera", Type: U32},
			{Name: "network", Type: String},
			{Name: "max_brightness", Type: U32},
			{Name: "cpus", Type: U32, Note: "how many elements the lists per processor of SYSTEM have"},
			{Name: "devices", Type: List, Note: "likewise those per device", Elements: []Field{{Type: String}}},
		},
		RequestProbeMap: {{Name: "apis", Type: List, Elements: []Field{{Name: "api_id", Type: U32}, {Name: "name", Type: String}}}},
	}
	var list []Message
	for _, m := range requests {
		reply := Message{ID: m.ID + ReplyBit, Name: m.Name + "_REPLY"}
		fields := append([]Field{code}, known[m.ID]...)
		reply.Layouts = []Layout{{Fields: fields}}
		if known[m.ID] != nil {
			// A failed reply may consist of its code alone.
			reply.Layouts = append(reply.Layouts, Layout{Name: "failed", Fields: fields[:1]})
		}
		list = append(list, reply)
	}
	return list
}

// LookupControl returns the packet with that ID, or nil.
func LookupControl(id uint32) *Message {
	for i := range Controls {
		if Controls[i].ID == id {
			return &Controls[i]
		}
	}
	return nil
}
