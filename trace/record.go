package trace

import (
	"path"
	"slices"
	"strings"
)

// Record is one entry of a trace. Kind selects the payload field that is valid; the
// others hold whatever an earlier use of the Record left there.
type Record struct {
	Kind Kind
	// Time is when it happened, in nanoseconds of the trace's clock; 0 if the
	// format does not record it. For a Call it is when the resource changed
	// hands: the return of an allocation, the entry of a free.
	Time int64
	PID  int32 // process id in the tracer's namespace, 0 if unknown
	TID  int32 // thread id, 0 if unknown
	CPU  int32 // processor the event was recorded on plus one, 0 if unknown

	Header       Header
	Process      Process
	Thread       Thread
	TracerModule TracerModule
	Resource     Resource
	Context      Context
	Module       Module
	Mapping      Mapping // of KindMapping and KindUnmapping
	Call         Call
	HeapGrow     HeapGrow
	HeapInfo     HeapInfo
	Attachment   Attachment
	Comment      string // one line of text without its line end
	Exec         Exec
	Exit         Exit
	Lost         Lost
	Opaque       Opaque
	Function     Function
	Sample       Sample
	Event        Event
	RSS          RSS
	Window       Window
	Cost         Cost
}

// Clock is what Record.Time counts.
type Clock uint8

// The clocks of a trace.
const (
	ClockUnknown   Clock = iota
	ClockMonotonic       // CLOCK_MONOTONIC of the traced machine
	ClockDay             // CLOCK_MONOTONIC modulo 24 hours, in whole milliseconds, as sp-rtrace keeps it
	ClockWall            // CLOCK_REALTIME, since 1970, as SWAP has it
)

// Header describes the recording.
type Header struct {
	Format      string // name of the format it was read from, empty when live
	Version     string // version of that format, as "2.0"
	Arch        string // machine name as uname -m prints it
	BigEndian   bool   // byte order of the traced machine
	PointerSize int    // bytes, 4 or 8; 0 if unknown
	Clock       Clock
	// WallTime (ns since 1970) and ClockTime (ns of Clock) were read at the
	// same moment, so wall = Time - ClockTime + WallTime. Both are 0 if unknown.
	WallTime  int64
	ClockTime int64
	Filter    string // filters that were applied, as sp-rtrace spells them: "leaks|compress"
	Origin    string // program that wrote the trace
	// Ends announces an End: without one, the trace is cut or its writer did not finish.
	Ends bool
}

// Process is a traced process; its id is Record.PID.
type Process struct {
	Name     string // the program as its command line names it, or the whole command line
	WallTime int64  // when its tracing began, ns since 1970; 0 if unknown
	Depth    int    // most frames kept per stack; -1 if unknown
	Parent   int32  // process id of the parent, 0 if unknown
	Started  int64  // when the process itself began, ns since 1970; 0 if unknown
	Path     string // file of the program; empty if unknown
}

// Program returns the name of the program without its folder and arguments, or "" if
// it is unknown. If Path is known, Name may be a whole command line.
func (p *Process) Program() string {
	name := p.Name
	if first, _, _ := strings.Cut(name, " "); p.Path != "" && first != "" {
		name = strings.TrimSuffix(first, ":") // of a title such as "nginx: worker process"
	}
	if name == "" {
		return ""
	}
	return path.Base(name)
}

// Thread names the thread Record.TID.
type Thread struct {
	Name string
}

// TracerModule is one active tracing module.
type TracerModule struct {
	ID           uint32 // 0 for the main module, else one bit
	Major, Minor uint16
	Name         string
}

// Resource is a kind of thing that calls allocate and free.
type Resource struct {
	ID       uint32 // 1, 2, 3 …: what Call.Resource holds; not a bit mask
	Type     string // short name, one word
	Desc     string
	RefCount bool // allocations and frees of one id are counted (sp-rtrace RESR flag 1)
	// Sampled marks a resource of which the trace has only some allocations, each
	// with the size that it stands for, and no frees. What is live is unknown.
	Sampled bool
}

// Context names one bit of Call.Context, or is a mark that the user has set.
type Context struct {
	ID   uint32 // the bit: 1, 2, 4 …; 0 for a mark
	Name string
}

// Module is a file with an executable mapping.
type Module struct {
	Path    string
	BuildID string // GNU build-id in hexadecimal, empty if there is none or the file was gone
	Inode   uint64
	Major   uint32 // device of the file
	Minor   uint32
	// Fixed marks a file that is linked at fixed addresses (ET_EXEC).
	Fixed bool
}

// Mapping is an executable mapping [Start, End) of a file or special area.
type Mapping struct {
	Start, End uint64
	// Offset is the offset in the file, in bytes, that is mapped at Start.
	Offset uint64
	// Base is the address that file offset 0 has or would have. For a file linked
	// at fixed addresses it equals Start (see docs/formats/sprtrace.md, MMAP). It is
	// 0 if the format does not record it; then Offset is unknown, too.
	Base uint64
	Path string
}

// Call is a change of a resource: it was allocated, freed or moved.
type Call struct {
	// Seq numbers the calls of a trace from 1 in their order. Filters keep it, so
	// it identifies a call.
	Seq      uint64
	Op       Op
	Function string // canonical name of the traced function
	Resource uint32 // Resource.ID; 0 if the trace declares none
	ID       uint64 // address, file descriptor … by resource
	OldID    uint64 // OpMove: the ID that was freed
	Size     uint64 // as the resource counts it; 0 for frees
	// EntryTime is when an OpMove began, on the clock of Record.Time.
	EntryTime int64
	Context   uint32 // mask of Context.ID
	// Index numbers the block: its allocation, its moves and its free have the
	// same Index. It is 0 in all formats but MTRC.
	Index  uint64
	Caller Caller
	// Thread identifies the thread in formats that do not have the kernel's thread
	// id: MTRC has the result of pthread_self. It is 0 if Record.TID identifies the
	// thread, or nothing does.
	Thread uint64
	Stack  Stack
	Args   []Arg
}

// Caller is the place in the program that made a Call, as far as a format or a
// resolver knows it. It is one place: chosen from the frames of the stack, or recorded
// without a stack. Unknown parts are zero.
type Caller struct {
	Function string // as the linker knows it: the names of C++ are mangled
	File     string // source file
	Line     uint64 // counted from 1
}

// Stack is a list of return addresses, innermost caller first.
type Stack struct {
	Frames []uint64
	// Names holds one text for each frame ("main() at demo.c:12"), or is empty.
	// Any of the texts may be empty.
	Names []string
	End   StackEnd
	// FramePointer reports whether at least one step used a frame pointer instead
	// of unwind tables.
	FramePointer bool
	Reason       string // of StackFailed, in one word
	// ID is a shortcut: stacks with the same ID, other than 0, have the same Frames, End,
	// FramePointer and Reason. Only the tracer sets it, and no format stores it. Who
	// changes one of these fields must set it to 0.
	ID uint64
}

// Arg is a traced argument in text form.
type Arg struct {
	Name, Value string
}

// HeapGrow is memory that an allocator got from the system. Memory that it returns has
// no record.
type HeapGrow struct {
	Address, Size uint64 // bytes
	// Internal marks memory that a tracer inside the traced process uses for itself
	// (MTRC I), not for the program's blocks (MTRC H).
	Internal bool
}

// HeapInfo holds the bounds of the heap and the fields of mallinfo(3), sizes in bytes.
type HeapInfo struct {
	Bottom, Top                                    uint64
	Arena, OrdBlks, SmBlks, HBlks, HBlkHd          uint64
	UsmBlks, FsmBlks, UordBlks, FordBlks, KeepCost uint64
}

// RSS is how much memory of a process is resident. A trace has one from just before the
// probes were attached, one after each exec, and one from its end. If the process ended
// first, the last one is the last that was read.
type RSS struct {
	Bytes uint64
}

// Window begins, changes or ends a window: a time in which calls were recorded, of a
// stretch of time in which most were not. Calls up to the next Window stand for Weight
// calls each. A Weight of 0 ends the window: later calls were recorded while the probes
// were being removed. Weight and Until were fixed before the window opened, and its place
// in the stretch was chosen at random.
type Window struct {
	Weight uint64
	Until  int64 // the planned end, on the clock of Record.Time; 0 for the end of a window
	// Stretch is the length of the stretch, ns. It is 0 for a window that goes on with
	// another weight, because it was more expensive than planned.
	Stretch int64
	// Used and Added are those of Cost, at Record.Time: the differences between two Windows
	// are of the time between them.
	Used, Added int64
	// Doubt is how far Added may be from the truth, in both directions: a share of it, in
	// millionths.
	Doubt uint64
}

// Cost is what recording cost the process up to Record.Time. Times are in ns.
type Cost struct {
	Used   int64  // processor time of the process since the recording began, Added included
	Added  int64  // of it, that went into probes
	Tracer int64  // processor time of the tracer itself since then
	Budget uint64 // share of Used that Added was to stay below, in millionths; 0 for none
	// Of a recording with a budget:
	Worst   uint64 // largest share of 10 seconds that was added, in millionths
	Over    uint64 // share of the intervals of 10 seconds that exceeded the budget, in millionths
	Covered int64  // the time that windows stand for
	Longest int64  // the longest window
}

// MostShare is the largest share that Cost.Share returns. The measurement does not distinguish
// larger ones.
const MostShare = 0.95

// Share returns the share of the processor time that recording added, MostShare at most.
func (c *Cost) Share() float64 {
	if c.Used <= 0 {
		return 0
	}
	return min(float64(c.Added)/float64(c.Used), MostShare)
}

// CostDoubt is how far Cost.Added may be from the truth, as a share of it: what a probe costs was
// measured in another process, which has other caches and other code around.
const CostDoubt = 0.25

// Slower returns how many times as much processor time the process took as without being
// recorded, and between which values that is. If too little is left of the processor time for an
// upper bound, atLeast is true, high is 0 and times is the lower bound.
func (c *Cost) Slower() (times, low, high float64, atLeast bool) {
	share := c.Share()
	low = 1 / (1 - (1-CostDoubt)*share)
	if (1+CostDoubt)*share >= MostShare {
		return low, low, 0, true
	}
	return 1 / (1 - share), low, 1 / (1 - (1+CostDoubt)*share), false
}

// Attachment is a file that belongs to the trace.
type Attachment struct {
	Name string // what it is: "maps", "pageflags", "side"
	Path string // relative to the trace's folder if the file is in or below it
}

// Exec records that the process replaced its program.
type Exec struct {
	Name string // new command name
}

// Exit records that the thread Record.TID ended, or with Process the whole process.
type Exit struct {
	Process bool
}

// LostPaused is the reason of a pause: nothing was recorded from Lost.Since to
// Record.Time. Its Count is 1; the number of missing events is unknown.
const LostPaused = "paused"

// LostNames is the reason of mappings and thread names that became known late. Between
// Lost.Since and Record.Time, stacks through these mappings may lack names, and so may
// these threads. No call is missing.
const LostNames = "sideband lost"

// Lost records that events are missing from the trace before this point.
type Lost struct {
	Count  uint64
	Reason string // one of the tracer's reasons of losses, as "ring full"
	Since  int64  // the loss happened after this time and before Record.Time; 0 if unknown
}

// Events returns the number of missing events. It is 0 if only names are missing.
func (l *Lost) Events() uint64 {
	if l.Reason == LostNames {
		return 0
	}
	return l.Count
}

// Opaque is a packet that only its own format understands.
type Opaque struct {
	Format string // name of the format
	ID     uint32 // packet type as that format numbers it
	Data   []byte // payload, without the packet's header
}

// Clone returns a copy of r whose valid payload shares no slice with r.
func (r *Record) Clone() *Record {
	c := *r
	switch r.Kind {
	case KindCall:
		c.Call.Stack.Frames = slices.Clone(r.Call.Stack.Frames)
		c.Call.Stack.Names = slices.Clone(r.Call.Stack.Names)
		c.Call.Args = slices.Clone(r.Call.Args)
	case KindOpaque:
		c.Opaque.Data = slices.Clone(r.Opaque.Data)
	case KindSample:
		c.Sample.Stack = r.Sample.Stack.clone()
	case KindEvent:
		c.Event.Stack = r.Event.Stack.clone()
		c.Event.Args = slices.Clone(r.Event.Args)
		c.Event.Data = slices.Clone(r.Event.Data)
	}
	return &c
}
