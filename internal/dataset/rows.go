package dataset

// Call is a row of the table calls.
type Call struct {
	Trace      string `parquet:"trace,dict" doc:"the trace; key with call" key:"yes"`
	Call       int64  `parquet:"call,delta" doc:"number of the call in the trace, from 1 on" key:"yes"`
	Since      *int64 `parquet:"since,optional" unit:"ns" doc:"time since the first call of the trace; NULL if the trace has no times"`
	Entered    *int64 `parquet:"entered,optional" unit:"ns" doc:"when a realloc began, since the first call; NULL for other calls, and if that is not known"`
	PID        int32  `parquet:"pid,dict" doc:"process; 0 if unknown, -1 for the second trace of a file that names no process, and so on"`
	TID        int32  `parquet:"tid,dict" doc:"thread; 0 if unknown"`
	Thread     int64  `parquet:"thread,optional,dict" doc:"thread as the program identifies it, in formats without the kernel's number"`
	CPU        *int32 `parquet:"cpu,optional,dict" doc:"processor; NULL if unknown"`
	Op         string `parquet:"op,dict" doc:"alloc, free, move (a realloc) or none"`
	Function   string `parquet:"function,dict" doc:"traced function, such as malloc"`
	Resource   string `parquet:"resource,dict" doc:"type of resource, such as memory"`
	Address    int64  `parquet:"address" doc:"address of the block, or file descriptor, or what else identifies it"`
	OldAddress *int64 `parquet:"old_address,optional" doc:"of a realloc: address of the block that it ended"`
	Size       *int64 `parquet:"size,optional" unit:"bytes" doc:"size of the block; NULL for frees"`
	Stack      int64  `parquet:"stack,optional,dict" doc:"stacks.stack; NULL if the call has no stack and no caller"`
	Context    int64  `parquet:"context,optional,dict" doc:"mask of contexts"`
	Index      int64  `parquet:"index,optional" doc:"number of the block in MTRC"`
	Args       string `parquet:"args,optional" doc:"traced arguments as a JSON array of {\"name\",\"value\"}"`
	Window     int64  `parquet:"window_number,optional,dict" doc:"windows.number, in a trace that was recorded with --budget; NULL in others"`
	Weight     *int64 `parquet:"weight,optional,dict" doc:"times windows.factor, it is how many calls the call stands for; NULL without windows"`
}

// Block is a row of the table blocks.
type Block struct {
	Trace      string `parquet:"trace,dict" doc:"the trace; key with call" key:"yes"`
	Call       int64  `parquet:"call" doc:"calls.call that made the block, an allocation or a realloc" key:"yes"`
	Since      *int64 `parquet:"since,optional" unit:"ns" doc:"when it was made, since the first call of the trace"`
	PID        int32  `parquet:"pid,dict" doc:"process, as in calls"`
	TID        int32  `parquet:"tid,dict" doc:"thread that made it"`
	Function   string `parquet:"function,dict" doc:"traced function that made it"`
	Resource   string `parquet:"resource,dict" doc:"type of resource"`
	Address    int64  `parquet:"address" doc:"address, or what else identifies the block"`
	Size       int64  `parquet:"size" unit:"bytes" doc:"size"`
	Stack      int64  `parquet:"stack,optional,dict" doc:"stacks.stack of the call that made it"`
	End        string `parquet:"end,dict" doc:"how it ended: freed, moved (by realloc), replaced (another block began at its address; its free is missing), exec (the process executed another program), or not: live, unknown (live when the recording had a gap), sampled (frees are not recorded). A block that was unknown when its address was freed or allocated again ended as unknown"`
	EndedCall  int64  `parquet:"ended_call,optional" doc:"calls.call that freed, moved or replaced it"`
	EndedSince *int64 `parquet:"ended_since,optional" unit:"ns" doc:"when it ended, since the first call"`
	EndedTID   int32  `parquet:"ended_tid,optional,dict" doc:"thread that ended it"`
	Lifetime   *int64 `parquet:"lifetime,optional" unit:"ns" doc:"how long it lived; only of blocks that were freed or moved, in traces with times"`
}

// Site is a row of the table sites: the sums of a call site.
type Site struct {
	Trace           string  `parquet:"trace,dict" doc:"the trace; key with number" key:"yes"`
	Number          int64   `parquet:"number" doc:"number of the call site in the trace, from 1 on" key:"yes"`
	Stack           int64   `parquet:"stack,optional" doc:"stacks.stack"`
	PID             int32   `parquet:"pid,dict" doc:"process, as in calls"`
	Resource        string  `parquet:"resource,dict" doc:"type of resource"`
	AllocatedBlocks int64   `parquet:"allocated_blocks" unit:"blocks" doc:"all allocations"`
	AllocatedBytes  int64   `parquet:"allocated_bytes" unit:"bytes" doc:"all allocations"`
	TemporaryBlocks int64   `parquet:"temporary_blocks" unit:"blocks" doc:"freed by the same thread before its next allocation"`
	TemporaryBytes  int64   `parquet:"temporary_bytes" unit:"bytes" doc:"of these"`
	FreedBlocks     int64   `parquet:"freed_blocks" unit:"blocks" doc:"freed or passed to realloc"`
	FreedBytes      int64   `parquet:"freed_bytes" unit:"bytes" doc:"of these"`
	ReplacedBlocks  int64   `parquet:"replaced_blocks" unit:"blocks" doc:"ended because another block began at their address"`
	ReplacedBytes   int64   `parquet:"replaced_bytes" unit:"bytes" doc:"of these"`
	LiveBlocks      int64   `parquet:"live_blocks" unit:"blocks" doc:"live at the end"`
	LiveBytes       int64   `parquet:"live_bytes" unit:"bytes" doc:"of these"`
	UnknownBlocks   int64   `parquet:"unknown_blocks" unit:"blocks" doc:"live when the recording had a gap, and not known to be freed"`
	UnknownBytes    int64   `parquet:"unknown_bytes" unit:"bytes" doc:"of these"`
	PeakBlocks      int64   `parquet:"peak_blocks" unit:"blocks" doc:"live when most bytes of the site were live"`
	PeakBytes       int64   `parquet:"peak_bytes" unit:"bytes" doc:"of these"`
	AtPeakBlocks    int64   `parquet:"at_peak_blocks" unit:"blocks" doc:"live when most bytes of all sites of the resource were live"`
	AtPeakBytes     int64   `parquet:"at_peak_bytes" unit:"bytes" doc:"of these"`
	First           int64   `parquet:"first" unit:"ns" doc:"time of the first allocation since the first call of the trace; 0 without times"`
	Last            int64   `parquet:"last" unit:"ns" doc:"time of the last allocation"`
	Oldest          *int64  `parquet:"oldest,optional" unit:"ns" doc:"when the oldest live block was made; NULL if none is live"`
	Verdict         string  `parquet:"verdict,dict" doc:"what the blocks do over time: growing, balanced, level, varying, empty or unclear (docs/suspects.md)"`
	BlocksPerSecond float64 `parquet:"blocks_per_second" unit:"blocks/s" doc:"growth of a growing site; 0 for others"`
	BytesPerSecond  float64 `parquet:"bytes_per_second" unit:"bytes/s" doc:"growth of a growing site; 0 for others"`
}

// Stack is a row of the table stacks.
type Stack struct {
	Trace        string `parquet:"trace,dict" doc:"the trace; key with stack" key:"yes"`
	Stack        int64  `parquet:"stack,delta" doc:"number of the stack in the trace, from 1 on" key:"yes"`
	PID          int32  `parquet:"pid,dict" doc:"process, as in calls"`
	Depth        int32  `parquet:"depth" unit:"addresses" doc:"how many return addresses it has; 0 for a caller without a stack"`
	End          string `parquet:"end,dict" doc:"how it ended: complete, truncated, failed, unknown or absent"`
	Reason       string `parquet:"reason,optional,dict" doc:"why it failed"`
	FramePointer bool   `parquet:"frame_pointer" doc:"whether a step used a frame pointer instead of unwind tables"`
	Site         string `parquet:"site,dict" doc:"the call site in words, as rtrace leaks names it: function and line, or else file and offset. It is the same in each run"`
	Function     string `parquet:"function,optional,dict" doc:"function of the site"`
	File         string `parquet:"file,optional,dict" doc:"source file of the site"`
	Line         int64  `parquet:"line,optional" doc:"line of the site"`
	Module       string `parquet:"module,optional,dict" doc:"program or library of the site"`
	BuildID      string `parquet:"build_id,optional,dict" doc:"build ID of the module"`
}

// Frame is a row of the table frames.
type Frame struct {
	Trace    string `parquet:"trace,dict" doc:"the trace; key with stack and position" key:"yes"`
	Stack    int64  `parquet:"stack,delta" doc:"stacks.stack" key:"yes"`
	Position int32  `parquet:"position" doc:"place in the stack, 0 for the innermost function" key:"yes"`
	Address  int64  `parquet:"address,optional" doc:"return address; the same for functions that are inlined there"`
	Offset   *int64 `parquet:"offset,optional" unit:"bytes" doc:"offset of the address in the file of the module"`
	Function string `parquet:"function,optional,dict" doc:"function"`
	File     string `parquet:"file,optional,dict" doc:"source file"`
	Line     int64  `parquet:"line,optional" doc:"line in it"`
	Module   string `parquet:"module,optional,dict" doc:"program or library"`
	BuildID  string `parquet:"build_id,optional,dict" doc:"build ID of the module"`
	Inlined  bool   `parquet:"inlined" doc:"inlined into the next frame"`
	Wrapper  bool   `parquet:"wrapper" doc:"a function that allocates on behalf of others, such as operator new"`
}

// Mapping is a row of the table mappings.
type Mapping struct {
	Trace   string `parquet:"trace,dict" doc:"the trace"`
	Since   *int64 `parquet:"since,optional" unit:"ns" doc:"time since the first call; negative before it"`
	PID     int32  `parquet:"pid,dict" doc:"process"`
	Event   string `parquet:"event,dict" doc:"map or unmap"`
	Start   int64  `parquet:"start" doc:"first address"`
	End     int64  `parquet:"end" doc:"address after the last one"`
	Offset  int64  `parquet:"offset" unit:"bytes" doc:"offset in the file at start"`
	Path    string `parquet:"path,optional,dict" doc:"file"`
	BuildID string `parquet:"build_id,optional,dict" doc:"build ID of the file, if the trace declared it before"`
}

// Loss is a row of the table losses.
type Loss struct {
	Trace    string `parquet:"trace,dict" doc:"the trace"`
	Since    *int64 `parquet:"since,optional" unit:"ns" doc:"when it was noticed, or when the gap ended, since the first call"`
	PID      int32  `parquet:"pid,dict" doc:"process; 0 if it concerns all"`
	Reason   string `parquet:"reason,dict" doc:"reason (docs/loss.md); paused for a pause"`
	Count    int64  `parquet:"count" doc:"missing events, or number of gaps"`
	Events   int64  `parquet:"events" doc:"missing events; 0 for gaps and if only names are missing"`
	Gap      bool   `parquet:"gap" doc:"nothing was recorded for a while"`
	Duration *int64 `parquet:"duration,optional" unit:"ns" doc:"length of the gap, or of the time in which the events were lost, if known"`
}

// Entry is a row of the table records.
type Entry struct {
	Trace  string `parquet:"trace,dict" doc:"the trace; key with number" key:"yes"`
	Number int64  `parquet:"number,delta" doc:"number of the row in the trace, from 1 on" key:"yes"`
	Call   int64  `parquet:"call" doc:"calls.call of the last call before it; 0 before the first"`
	Since  *int64 `parquet:"since,optional" unit:"ns" doc:"time since the first call; negative before it"`
	PID    int32  `parquet:"pid,dict" doc:"process"`
	TID    int32  `parquet:"tid,dict" doc:"thread"`
	Kind   string `parquet:"kind,dict" doc:"kind of record (docs/formats/jsonl.md)"`
	Record string `parquet:"record" doc:"the record as a JSON object, as in jsonl"`
}

// Resource is a row of the table resources: the sums of a type of resource.
type Resource struct {
	Trace           string `parquet:"trace,dict" doc:"the trace; key with resource" key:"yes"`
	Resource        string `parquet:"resource,dict" doc:"type of resource" key:"yes"`
	Description     string `parquet:"description,optional" doc:"what the trace declares about it"`
	Sampled         bool   `parquet:"sampled" doc:"only some allocations are in the trace, and no frees"`
	Calls           int64  `parquet:"calls" doc:"allocations, frees and reallocs"`
	Allocations     int64  `parquet:"allocations" doc:"calls that only allocate"`
	Frees           int64  `parquet:"frees" doc:"calls that only free"`
	Reallocs        int64  `parquet:"reallocs" doc:"calls that do both"`
	AllocatedBlocks int64  `parquet:"allocated_blocks" unit:"blocks" doc:"all allocations"`
	AllocatedBytes  int64  `parquet:"allocated_bytes" unit:"bytes" doc:"all allocations"`
	TemporaryBlocks int64  `parquet:"temporary_blocks" unit:"blocks" doc:"as in sites"`
	TemporaryBytes  int64  `parquet:"temporary_bytes" unit:"bytes" doc:"as in sites"`
	LiveBlocks      int64  `parquet:"live_blocks" unit:"blocks" doc:"live at the end"`
	LiveBytes       int64  `parquet:"live_bytes" unit:"bytes" doc:"of these"`
	UnknownBlocks   int64  `parquet:"unknown_blocks" unit:"blocks" doc:"as in sites"`
	UnknownBytes    int64  `parquet:"unknown_bytes" unit:"bytes" doc:"of these"`
	PeakBlocks      int64  `parquet:"peak_blocks" unit:"blocks" doc:"live when most bytes were live"`
	PeakBytes       int64  `parquet:"peak_bytes" unit:"bytes" doc:"of these"`
	UnmatchedFrees  int64  `parquet:"unmatched_frees" doc:"frees of blocks that were not live"`
	ReplacedBlocks  int64  `parquet:"replaced_blocks" unit:"blocks" doc:"as in sites"`
	ReplacedBytes   int64  `parquet:"replaced_bytes" unit:"bytes" doc:"of these"`
}

// Window is a row of the table windows: a time in which calls were recorded.
type Window struct {
	Trace   string  `parquet:"trace,dict" doc:"the trace; key with number" key:"yes"`
	Number  int64   `parquet:"number" doc:"number of the window in the trace, from 1 on" key:"yes"`
	Since   *int64  `parquet:"since,optional" unit:"ns" doc:"when it opened, since the first call; negative before it"`
	Open    *int64  `parquet:"open,optional" unit:"ns" doc:"how long it was open; NULL if the trace ends in it"`
	Stretch int64   `parquet:"stretch" unit:"ns" doc:"the time that it stands for"`
	Used    int64   `parquet:"used" unit:"ns" doc:"processor time of the process in it"`
	Added   int64   `parquet:"added" unit:"ns" doc:"of it, what probes took"`
	Factor  float64 `parquet:"factor" doc:"times calls.weight, it is how many calls a call stands for; 0 if the trace ends in the window, so that it is not known"`
}

// Estimate is a row of the table estimates: the allocations of memory from a stack, of a trace that
// was recorded in windows.
type Estimate struct {
	Trace      string  `parquet:"trace,dict" doc:"the trace; key with stack" key:"yes"`
	Stack      int64   `parquet:"stack,optional" doc:"stacks.stack; NULL for calls without a stack and a caller" key:"yes"`
	Blocks     float64 `parquet:"blocks" unit:"blocks" doc:"estimate of all allocations"`
	BlocksLow  float64 `parquet:"blocks_low" unit:"blocks" doc:"lower bound of the interval of 95 %"`
	BlocksHigh float64 `parquet:"blocks_high" unit:"blocks" doc:"upper bound"`
	Bytes      float64 `parquet:"bytes" unit:"bytes" doc:"estimate of all allocated bytes"`
	BytesLow   float64 `parquet:"bytes_low" unit:"bytes" doc:"lower bound"`
	BytesHigh  float64 `parquet:"bytes_high" unit:"bytes" doc:"upper bound"`
	AtLeast    bool    `parquet:"at_least" doc:"only the lower bounds are known"`
}

// Trace is the row of a trace in the table traces.
type Trace struct {
	Trace        string `parquet:"trace" doc:"first 16 hexadecimal digits of the SHA-256 of the file" key:"yes"`
	Schema       int32  `parquet:"schema" doc:"version of these tables"`
	Source       string `parquet:"source" doc:"name of the file, without its folder"`
	Format       string `parquet:"format" doc:"format of the file"`
	Origin       string `parquet:"origin,optional" doc:"program that wrote the trace"`
	Arch         string `parquet:"arch,optional" doc:"machine, as uname -m prints it"`
	Clock        string `parquet:"clock" doc:"clock of the trace: monotonic, day, wall or unknown"`
	Start        int64  `parquet:"start,optional,timestamp(microsecond)" doc:"time of the first call, UTC; NULL if unknown"`
	StartNS      int64  `parquet:"start_ns,optional" unit:"ns" doc:"the same since 1970"`
	Duration     *int64 `parquet:"duration,optional" unit:"ns" doc:"from the first call to the last one; NULL without times"`
	PID          int32  `parquet:"pid" doc:"process; 0 if unknown"`
	Process      string `parquet:"process,optional" doc:"name of the process, or its command line"`
	Program      string `parquet:"program,optional" doc:"name of the program"`
	Path         string `parquet:"path,optional" doc:"file of the program"`
	BuildID      string `parquet:"build_id,optional" doc:"build ID of the program"`
	Calls        int64  `parquet:"calls" doc:"rows in calls"`
	LostEvents   int64  `parquet:"lost_events" doc:"missing events"`
	Gaps         int64  `parquet:"gaps" doc:"number of gaps in the recording, such as pauses"`
	GapTime      int64  `parquet:"gap_time" unit:"ns" doc:"their length together, as far as it is known"`
	Complete     bool   `parquet:"complete" doc:"the trace was read to its end, without records that cannot be read"`
	RSSStart     *int64 `parquet:"rss_start,optional" unit:"bytes" doc:"resident memory at the start of the recording, if known"`
	RSSEnd       *int64 `parquet:"rss_end,optional" unit:"bytes" doc:"resident memory at its end"`
	NamesOfFiles bool   `parquet:"names_of_files" doc:"functions were also named from files of the machine that converted the trace"`
	Windows      int64  `parquet:"windows,optional" doc:"number of windows in which it was recorded (--budget); NULL if every call was recorded"`
}
