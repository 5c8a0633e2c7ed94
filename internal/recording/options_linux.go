package recording

import (
	"context"
	"os"
	"time"

	"rtrace-bpf/encoder"
	diagnostics "rtrace-bpf/internal/linux/dotnet"
	"rtrace-bpf/internal/recording/cost"
	"rtrace-bpf/internal/recording/excerpt"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/recording/snapshot"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/internal/recording/swapevents"
	"rtrace-bpf/internal/recording/watch"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// Options select which processes are recorded, and what of them.
type Options struct {
	PIDs   []int
	Held   Held         // the only process, if it is held until its probes are attached; else nil
	Tracer plan.Options // of each process, except for the process itself
	Follow *Follow      // also record the children of the processes; nil: do not

	Output     output.Options
	Format     string
	Encoding   encoder.Options
	Unbuffered bool // write each event within milliseconds

	Names    bool           // record the caller of each call by name
	Callers  resolve.Policy // which frame is the caller
	HeapInfo bool           // end with the state of malloc's heap
	Pages    bool           // attach the kernel's flags of pages
	Swap     *swapevents.Options
	Leaks    bool                // write a report of the blocks that were not freed
	Runtime  *diagnostics.Config // events of the .NET runtime to merge with native calls; nil for none
	PerfMap  bool                // name code that a .NET runtime has compiled

	// Snapshots are written next to each trace.
	Snapshots snapshot.Options
	// Watch takes the records instead of traces; nil: write traces.
	Watch *watch.Watch
	// Excerpts writes traces of parts of what Watch takes; nil for none.
	Excerpts *excerpt.Excerpts

	Duration time.Duration // 0 for no limit
	Paused   bool          // begin with tracing switched off
	Strict   bool          // end at the first lost event

	Report Reporter
	Line   *status.Line
	// Hurry is closed when the recording is to end at once.
	Hurry <-chan struct{}
	// Exit ends the program. It is called if a stream that nobody reads blocks the end that
	// Hurry asks for.
	Exit func()
}

// Follow selects how the children of processes are followed.
type Follow struct {
	Most int            // processes that are traced at the same time
	Wake chan os.Signal // receives SIGCHLD
}

// Reporter receives what happens during a recording. Its methods may be called by several
// goroutines.
type Reporter interface {
	// Ready is called when the probes of the first window are attached, or tracing is
	// switched off at the beginning. ctx ends with the recording. An error ends it.
	Ready(ctx context.Context) error
	// Off is called when tracing is off, at the beginning or after a window.
	Off()
	// Began is called when the probes of a process are attached.
	Began(p *Process)
	// Refused is called if a process cannot be traced and others are.
	Refused(err error)
	// TooMany is called if a process runs untraced, because so many are traced already.
	TooMany(pid, traced int)
	// Expensive is called if tracing costs a process much, or many of its calls are lost.
	Expensive(pid int, i *cost.Interval, costs host.Costs)
	// Full is called when a trace is as large as allowed, and ends.
	Full(pid int)
	// Ended is called when a trace is complete.
	Ended(s *Summary)
	// Failed is called when the recording of a process has failed and others continue.
	Failed(pid int, err error)
}

// Process is a process that is recorded.
type Process struct {
	PID   int
	Name  string
	Path  string // of its trace
	Child bool   // it was started by a process that is followed
}
