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

// State is where the BPF programs keep the state of a thread.
type State uint8

// The states.
const (
	StateAuto State = iota // task storage if the kernel has it
	StateTask              // task storage
	StateHash              // a hash map by thread ID
)

// Sites is how the BPF programs find out which site was hit.
type Sites uint8

// The ways to find a site.
const (
	SitesAuto    Sites = iota // cookies if the kernel has them
	SitesCookie               // by the cookie of the attachment (kernel 5.15)
	SitesAddress              // by its address
)

// Sideband is where the kernel's records of mappings, names, forks and exits come from.
type Sideband uint8

// The sources of sideband records.
const (
	SidebandAuto    Sideband = iota // the process's threads, unless there are too many
	SidebandTask                    // the process's threads
	SidebandMachine                 // all processes; the tracer leaves out other ones' records
)

// Unwind is a way to find the callers of a function.
type Unwind uint8

// The ways to unwind.
const (
	UnwindAuto   Unwind = iota // unwind tables, then a frame-pointer step where no rule exists
	UnwindEH                   // only unwind tables (.eh_frame, .debug_frame)
	UnwindFP                   // only the chain of frame pointers
	UnwindHelper               // the kernel's bpf_get_stack, for comparison
	UnwindNone                 // no stacks
)

// unwindNames are the names of the ways, by their numbers.
var unwindNames = [...]string{"auto", "eh", "fp", "helper", "none"}

// String returns the name of the way, as the flag --unwind takes it.
func (u Unwind) String() string { return unwindNames[u] }

// Unwinds returns the ways by name.
func Unwinds() map[string]Unwind {
	all := map[string]Unwind{}
	for i, name := range unwindNames {
		all[name] = Unwind(i)
	}
	return all
}

// Tables reports whether the BPF programs need unwind tables.
func (u Unwind) Tables() bool { return u <= UnwindEH }

// BPF returns the number of the way in the BPF programs.
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
	ringBudget      = 256 << 20 // bytes over all CPUs and tracers, unless RingSize is given
	HashedThreads   = 64 << 10  // most threads with StateHash
	SparedThreads   = 1 << 10   // most threads in the hash map with StateTask, if the kernel gives a thread no task storage
)

// Options select what is recorded and how. With only PID set, a tracer records every call of
// the allocators that are traced by default (see Allocators), without stacks.
type Options struct {
	PID          int       // of the process to trace
	Depth        int       // most frames of a stack; 0: no stacks
	BacktraceAll bool      // record stacks of frees, too
	Unwind       Unwind    // how stacks are found
	VerifySites  int       // compare one in N calls that are recorded inside a function with its entry and return; 0: none
	VerifyUnwind int       // check one in N stacks with the unwinder in Go; 0: none
	Args         bool      // record all arguments of allocators' calls
	MinSize      uint64    // leave out blocks with fewer bytes, and their frees
	HeapGrowth   bool      // record the memory that the allocator gets from the system
	MaxRate      uint64    // calls per second of the process above which recording pauses; 0: it never pauses
	Budget       float64   // share of the processor time of the process that recording may add: it is recorded in windows; 0: all of it is
	Operators    Operators // the C++ operators that give their names to calls of allocators
	NoLive       bool      // do not track live blocks; Stats then has none

	// Allocators, Library and Symbols select which allocators are traced. Without them
	// these are the ones that serve functions of C, the C library's, and those with known
	// prefixes.
	Allocators []string          // by name: one of AllocatorKinds, or "prefix:" and a prefix
	Library    string            // path of a file: its allocators
	Symbols    map[string]uint64 // addresses of functions in Library, or else in the program, as its symbol table would have them

	// Activity selects what is recorded of the process in addition to calls. Its events are
	// in the order of their times among the calls.
	Activity activity.Options
	// Functions are the functions of function tracing. Their events are in the same order.
	Functions functions.Options
	// NoMemory leaves out all allocators.
	NoMemory bool
	// Faults records which pages of the process become resident, and the page faults that bring
	// them. It goes with NoMemory, and without Modules and MaxRate.
	Faults bool
	// Modules are the resource modules to trace.
	Modules []*modules.Module

	Origin string // name and version of the recording program, for the trace's header

	RingSize  int // bytes per CPU, a power of two; 0: the default
	Shares    int // tracers at the same time, which share ringBudget; 0 means 1
	Buffer    Buffer
	Mechanism host.Mechanism
	State     State
	Sites     Sites
	Ways      Ways
	Sideband  Sideband
	Bounded   bool // use the programs for kernels without bpf_loop; stacks then have at most MaxBounded frames

	Features host.Features // what the kernel offers; nil: host.Kernel

	Testing TestOptions

	// Idle, if set, is called by ReadRecord when it has returned all records and is about to
	// wait. The buffers are then read every few milliseconds, however few events are in them.
	Idle func()
	// Tick, if set, is called by ReadRecord about once per TickInterval, also while it waits.
	Tick func()
	// Log, if set, is called with lines about what is done, for -v.
	Log func(format string, args ...any)
	// Warn, if set, is called with lines about errors that do not end the trace, and about
	// what VerifyUnwind finds. Any goroutine may call it.
	Warn func(format string, args ...any)
}

// TestOptions are set only by tests and benchmarks of the tracer.
type TestOptions struct {
	DrainLimit   time.Duration // time without progress at the end after which unfinished records are given up; 0: the default
	NoStorage    bool          // no thread gets the task storage that the kernel has
	FewThreads   uint32        // most threads in the hash map; 0: the default
	sidebandSize int           // bytes of a CPU's buffer for sideband records; 0: the default
	NoStackCache bool          // unwind every stack
	FaultEvents  bool          // count page faults as on machines without tracepoints for them
	VerifierLog  ebpf.LogLevel // of the kernel's verifier
	EveryProgram bool          // also load the programs that no probe runs
}

// TickInterval is the time between calls of Options.Tick.
const TickInterval = time.Second

// Check returns an error if the options are invalid or contradict each other.
func (o *Options) Check() error {
	switch {
	case o.PID <= 0:
		return fmt.Errorf("process id %d is not positive", o.PID)
	case o.Depth < 0 || o.Depth > MaxDepth:
		return fmt.Errorf("depth %d is not within 0 to %d", o.Depth, MaxDepth)
	case o.RingSize != 0 && (o.RingSize < MinRingSize || o.RingSize > MaxRingSize || bits.OnesCount(uint(o.RingSize)) != 1):
		return fmt.Errorf("ring size %d is not a power of two from %d to %d", o.RingSize, MinRingSize, MaxRingSize)
	case o.Unwind > UnwindNone:
		return fmt.Errorf("unknown way %d to unwind", o.Unwind)
	case o.VerifySites < 0:
		return fmt.Errorf("cannot compare one in %d calls", o.VerifySites)
	case o.VerifySites > 0 && o.Ways != WaysPaths:
		return errors.New("only calls that are recorded inside a function can be compared")
	case o.VerifyUnwind < 0:
		return fmt.Errorf("cannot check one in %d stacks", o.VerifyUnwind)
	case o.VerifyUnwind > 0 && (!o.Unwind.Tables() || o.Depth == 0):
		return errors.New("only stacks from unwind tables can be checked")
	case o.VerifyUnwind > 0 && o.Buffer == BufferPerf:
		return errors.New("checking stacks needs ring buffers")
	case o.Faults:
		if err := o.checkFaults(); err != nil {
			return err
		}
	case o.NoMemory && len(o.Modules) == 0:
		return errors.New("nothing to trace: neither memory nor another resource module")
	case len(o.Modules) > 0 && o.Buffer == BufferPerf:
		return errors.New("resource modules other than memory need ring buffers")
	case o.Budget < 0 || o.Budget > 1:
		return fmt.Errorf("a budget of %v is not within 0 to 1", o.Budget)
	case o.Budget > 0:
		if err := o.checkBudget(); err != nil {
			return err
		}
	case o.NoLive && o.MinSize > 0:
		return errors.New("a minimum size needs live blocks to be tracked")
	}
	return o.checkAllocators()
}

// checkBudget returns an error if windows cannot hold what is recorded.
func (o *Options) checkBudget() error {
	switch {
	case o.MaxRate > 0:
		return errors.New("a budget and a maximum rate exclude each other")
	case !o.NoLive:
		return errors.New("a budget leaves no live blocks to track: windows miss frees")
	case o.MinSize > 0:
		return errors.New("a minimum size needs live blocks to be tracked, which a budget does not allow")
	case o.Calls() || o.Activity.Any():
		return errors.New("a budget is for allocators alone, not for modules, traced functions or activity")
	}
	return nil
}

// Frames returns the most frames of a stack; 0 if there are no stacks.
func (o *Options) Frames() int {
	if o.Unwind == UnwindNone {
		return 0
	}
	return o.Depth
}

// Calls reports whether calls of functions other than allocators' are recorded: with function
// tracing and with resource modules.
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
