package plan

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/cilium/ebpf"

	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/modules"
	"rtrace-bpf/tracer/object"
)

// Buffer is a way for events to leave the kernel.
type Buffer uint8

// The buffers.
const (
	BufferRing Buffer = iota // a BPF ring buffer per CPU (kernel 5.8)
	BufferPerf               // a perf event buffer per CPU
)

// State is where the programs keep what they know of a thread.
type State uint8

// The states.
const (
	StateAuto State = iota // task storage if the kernel has it
	StateTask              // task storage
	StateHash              // a hash by thread id
)

// Sites is how the programs know which site they have hit.
type Sites uint8

// The ways to know a site.
const (
	SitesAuto    Sites = iota // cookies if the kernel has them
	SitesCookie               // by the cookie of the attachment (kernel 5.15)
	SitesAddress              // by its address
)

// Sideband is where the kernel's records of mappings, names, forks and exits come from.
type Sideband uint8

// The ways to receive them.
const (
	SidebandAuto    Sideband = iota // from the threads, if they are not too many
	SidebandTask                    // from the threads of the process alone
	SidebandMachine                 // from all processes; those of others are left out by the tracer
)

// Unwind is a way to find the callers of a function.
type Unwind uint8

// The ways to unwind.
const (
	UnwindAuto   Unwind = iota // unwind tables, then a frame-pointer step where no rule exists
	UnwindEH                   // unwind tables (.eh_frame, .debug_frame) alone
	UnwindFP                   // the chain of frame pointers alone
	UnwindHelper               // the kernel's bpf_get_stack, for comparison
	UnwindNone                 // no stacks
)

var unwindNames = [...]string{"auto", "eh", "fp", "helper", "none"}

// String names the way as the flag --unwind does.
func (u Unwind) String() string { return unwindNames[u] }

// Unwinds returns the ways by name.
func Unwinds() map[string]Unwind {
	all := map[string]Unwind{}
	for i, name := range unwindNames {
		all[name] = Unwind(i)
	}
	return all
}

// Tables says whether the programs need unwind tables.
func (u Unwind) Tables() bool { return u <= UnwindEH }

// BPF returns the way as the programs number it.
func (u Unwind) BPF() uint32 {
	return uint32([...]object.ProbeUnwindMode{
		object.ProbeUnwindModeUNWIND_AUTO, object.ProbeUnwindModeUNWIND_TABLES, object.ProbeUnwindModeUNWIND_FRAME_POINTER,
		object.ProbeUnwindModeUNWIND_HELPER, object.ProbeUnwindModeUNWIND_AUTO,
	}[u])
}

// Limits of the options.
const (
	MaxDepth     = 512       // frames, MAX_DEPTH in bpf/records.h
	MaxBounded   = 128       // frames on kernels without bpf_loop, MAX_STEPS in bpf/unwind.h
	DefaultDepth = 64        // frames
	MaxRingSize  = 256 << 20 // bytes per CPU
	MinRingSize  = 64 << 10  // bytes per CPU

	defaultRingSize = 8 << 20   // bytes per CPU
	ringBudget      = 256 << 20 // bytes over all CPUs, when the size is not given
	HashedThreads   = 64 << 10  // most threads with StateHash
	SparedThreads   = 1 << 10   // most threads in the hash with StateTask, for want of storage
)

// Options say what is recorded and how. The zero value, but for PID, records
// every call of the C library's allocator without stacks.
type Options struct {
	PID          int
	Depth        int       // most frames of a stack, 0 for no stacks
	BacktraceAll bool      // frees have a stack, too
	Unwind       Unwind    // how stacks are found
	VerifyUnwind int       // check every so many stacks with the Go unwinder; 0 for none
	Args         bool      // calls of allocators have their arguments
	MinSize      uint64    // smaller blocks are left out, with their frees
	HeapGrowth   bool      // also record the memory that the allocator gets from the system
	MaxRate      uint64    // calls per second, of the process, above which recording pauses; 0: it never does
	Operators    Operators // whose calls have the name of the C++ operator that makes them
	NoLive       bool      // do not track live blocks; Stats has none then

	// What of the allocators is traced; without any of these whatever serves the
	// process, the C library's and those with known prefixes.
	Allocators []string          // by name: one of AllocatorKinds, or "prefix:" and a prefix
	Library    string            // that of the file with this path
	Symbols    map[string]uint64 // addresses of functions, as symbol tables have them, in Library or else the program

	// Activity is what else is recorded. Its events stand among the calls in the
	// order of their times.
	Activity activity.Options
	// Functions is which functions are told of besides, in the same way.
	Functions functions.Options
	// NoMemory leaves out all allocators.
	NoMemory bool
	// Modules is what else is traced beside memory.
	Modules []*modules.Module

	Origin string // program and version, for the trace's header

	RingSize  int // bytes per CPU, a power of two; 0 for the default
	Shares    int // tracers at the same time, which share the memory for rings of the default size; 0 is one
	Buffer    Buffer
	Mechanism host.Mechanism
	State     State
	Sites     Sites
	Sideband  Sideband
	Bounded   bool // use the programs for kernels without bpf_loop; stacks are then at most MaxBounded deep

	Features host.Features // what the kernel offers; nil: ask it

	Testing TestOptions

	// Idle is called by ReadRecord when it has returned all that there is and is
	// about to wait. With it the buffers are read every few milliseconds, however
	// little is in them.
	Idle func()
	// Tick is called by ReadRecord about once a second, also while it waits.
	Tick func()
	// Log takes lines about what is done, for -v; nil for none.
	Log func(format string, args ...any)
	// Warn takes lines about what went wrong and does not end the trace, and
	// what VerifyUnwind finds; nil for none. Any goroutine may call it.
	Warn func(format string, args ...any)
}

// TestOptions are set by tests and benchmarks of the tracer only.
type TestOptions struct {
	DrainLimit   time.Duration // without progress at the end, after which unfinished records are given up; 0 for the default
	NoStorage    bool          // no thread gets the task storage that the kernel has
	FewThreads   uint32        // most threads in the hash; 0 for the default
	sidebandSize int           // bytes of a buffer for records of mappings and names; 0 for the default
	NoStackCache bool          // every stack is unwound
	VerifierLog  ebpf.LogLevel // of the kernel's verifier
	EveryProgram bool          // load the programs that no probe needs, too
}

// TickInterval is how often Options.Tick is called.
const TickInterval = time.Second

// Check says what is wrong with the options.
func (o *Options) Check() error {
	switch {
	case o.PID <= 0:
		return fmt.Errorf("process id %d is not positive", o.PID)
	case o.Depth < 0 || o.Depth > MaxDepth:
		return fmt.Errorf("depth %d is not within 0 to %d", o.Depth, MaxDepth)
	case o.RingSize != 0 && (o.RingSize < MinRingSize || o.RingSize > MaxRingSize || bits.OnesCount(uint(o.RingSize)) != 1):
		return fmt.Errorf("ring size %d is not a power of two from %d to %d", o.RingSize, MinRingSize, MaxRingSize)
	case o.Unwind > UnwindNone:
		return fmt.Errorf("no way %d to unwind", o.Unwind)
	case o.VerifyUnwind < 0:
		return fmt.Errorf("every %d stacks cannot be checked", o.VerifyUnwind)
	case o.VerifyUnwind > 0 && (!o.Unwind.Tables() || o.Depth == 0):
		return errors.New("only stacks from unwind tables can be checked")
	case o.VerifyUnwind > 0 && o.Buffer == BufferPerf:
		return errors.New("stacks can be checked with ring buffers only")
	case o.NoMemory && len(o.Modules) == 0:
		return errors.New("nothing is to be traced")
	case len(o.Modules) > 0 && o.Buffer == BufferPerf:
		return errors.New("modules beside memory go with ring buffers only")
	case o.NoLive && o.MinSize > 0:
		return errors.New("a minimum size needs the live blocks to be tracked")
	}
	return o.checkAllocators()
}

// Frames returns the most frames of a stack.
func (o *Options) Frames() int {
	if o.Unwind == UnwindNone {
		return 0
	}
	return o.Depth
}

// RingBytes returns the size of each CPU's ring.
func (o *Options) RingBytes(cpus int) int {
	if o.RingSize != 0 {
		return o.RingSize
	}
	size, shares := defaultRingSize, max(o.Shares, 1)
	rings := 1
	if o.Activity.Any() {
		rings++ // that has rings of the same size
	}
	if o.Calls() {
		rings++
	}
	shares *= rings
	for size > MinRingSize && size*cpus*shares > ringBudget {
		size /= 2
	}
	return size
}

// Calls says whether calls of functions are told of beside those of allocators.
func (o *Options) Calls() bool { return o.Functions.Any() || len(o.Modules) > 0 }

// Warnf calls Warn, if there is one.
func (o *Options) Warnf(format string, args ...any) {
	if o.Warn != nil {
		o.Warn(format, args...)
	}
}

// Logf calls Log, if there is one.
func (o *Options) Logf(format string, args ...any) {
	if o.Log != nil {
		o.Log(format, args...)
	}
}
