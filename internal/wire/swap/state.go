package swap

// statusLayouts holds the layouts of PROCESS_STATUS_INFO. The right one covers
// the whole payload, with sizes below 2^48 and valid paths: a list in the
// layout of the kernel also parses as one of the document, with each path
// shifted by four bytes.
var statusLayouts = []Layout{
	{Name: "document", Note: "both texts; no public writer sends a tid", Fields: []Field{pid, {Name: "files", Type: List, Elements: []Field{
		{Name: "fd", Type: I32}, tid, fileSize, filePath,
	}}}},
	{Name: "kernel41", Note: "kernel of 2015 and 2016", Fields: []Field{pid, openFiles}},
	{Name: "kernel42", Note: "later kernel", Fields: []Field{pid, openFiles, {Name: "sockets", Type: List, Elements: []Field{
		{Name: "fd", Type: I32}, {Name: "ip", Type: IPv4}, {Name: "port", Type: U32},
	}}}},
}

var (
	openFiles = Field{Name: "files", Type: List, Elements: []Field{{Name: "fd", Type: I32}, fileSize, filePath}}
	fileSize  = Field{Name: "size", Type: U64, Check: IsSize, Note: "bytes"}
	filePath  = Field{Name: "path", Type: String, Check: IsPath}
)

// systemLayouts holds the layouts of SYSTEM. The message does not contain the
// numbers of processors and devices.
var systemLayouts = []Layout{
	{Name: "4.1", Fields: system(nil)},
	{Name: "4.2", Note: "a side branch of 2016", Fields: system([]Field{{Name: "gem_pss", Type: U64, Check: IsMemory}, {Name: "threed", Type: U64, Check: IsMemory}})},
}

// system returns the fields of SYSTEM, with additional ones for each target
// process.
func system(more []Field) []Field {
	load := Field{Name: "load", Type: Float, Check: IsLoad, Note: "percent of all processors together"}
	process := Field{Name: "pid", Type: U32, Check: IsPID}
	target := []Field{
		process, load,
		{Name: "virtual", Type: U64, Check: IsMemory, Note: "bytes"},
		{Name: "resident", Type: U64, Check: IsMemory},
		{Name: "shared", Type: U64, Check: IsMemory},
		{Name: "pss", Type: U64, Check: IsMemory},
	}
	target = append(target, more...)
	target = append(target,
		Field{Name: "total_alloc", Type: U64, Check: IsMemory},
		Field{Name: "threads", Type: List, Elements: []Field{{Name: "tid", Type: U32, Check: IsPID}, load}})
	fields := []Field{
		{Name: "cpu_frequency_khz", Type: List, Count: PerCPU, Elements: []Field{{Type: Float, Check: IsClock}}},
		{Name: "cpu_load_percent", Type: List, Count: PerCPU, Elements: []Field{{Type: Float, Check: IsLoad}}},
		{Name: "system_memory_used", Type: U64, Check: IsMemory, Note: "bytes"},
		{Name: "target_processes", Type: List, Elements: target},
		{Name: "other_processes", Type: List, Elements: []Field{process, load}},
		{Name: "total_used_drive_mb", Type: U32},
		{Name: "disk_reads", Type: U32, Note: "since the message before, as the next five"},
		{Name: "disk_sectors_read", Type: U32, Note: "bytes, despite the name"},
		{Name: "disk_writes", Type: U32},
		{Name: "disk_sectors_written", Type: U32, Note: "bytes"},
		{Name: "network_send", Type: U32, Note: "bytes"},
		{Name: "network_receive", Type: U32, Note: "bytes"},
	}
	for _, name := range []string{
		"wifi", "bt", "gps", "brightness", "camera", "sound", "audio", "vibration", "voltage", "rssi", "video", "call", "dnet", "energy",
	} {
		fields = append(fields, Field{Name: name, Type: U32})
	}
	return append(fields,
		Field{Name: "energy_per_device", Type: List, Count: PerDevice, Elements: []Field{{Type: U32}}},
		Field{Name: "app_energy_per_device", Type: List, Count: PerDevice, Elements: []Field{{Type: U32}}})
}

// Devices lists the devices with an energy model in real daemons.
var Devices = []string{"FLASH", "CPU", "LCD", "WIFI", "BT"}

// MaxCPUs is the largest number of processors to try if the number is unknown.
const MaxCPUs = 256
