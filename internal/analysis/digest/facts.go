package digest

import (
	"strings"

	"rtrace-bpf/internal/analysis/loss"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Facts describes how a trace was recorded and what is missing from it.
type Facts struct {
	Header    trace.Header  // the first one
	Process   trace.Process // the first
	PID       int32         // of that process
	Depth     int           // limit of frames per stack, -1 if unknown
	Traces    int           // number of headers: a file may contain several traces
	Calls     uint64        // events
	Duration  int64         // nanoseconds between the first and the last call; 0 without a clock
	FirstTime int64         // of the first call, on the trace's clock; 0 if unknown
	Coarse    bool          // times have a resolution of a millisecond
	Modules   int
	Execs     int
	Became    string // last program that the first process ran with exec
	Exited    bool   // the process ended while it was traced
	Ended     bool   // the trace ended as planned
	Lost      loss.Table
	HeapGrown live.Amount // got from the system for the program's blocks
	// Unfollowed is the number of calls of further types of resources. Beyond
	// reports that the sizes of all blocks add up to more than 64 bits.
	Unfollowed uint64
	Beyond     bool

	bytes     uint64
	processed bool
}

// add processes a record that is not a call.
func (f *Facts) add(r *trace.Record) {
	switch r.Kind {
	case trace.KindLost:
		f.Lost.Add(r)
	case trace.KindExit:
		f.Exited = f.Exited || r.Exit.Process
	case trace.KindEnd:
		f.Ended = true
	case trace.KindHeapGrow:
		if !r.HeapGrow.Internal {
			f.HeapGrown.AddBlock(r.HeapGrow.Size)
		}
	}
}

func (f *Facts) process(r *trace.Record) {
	if f.processed {
		return
	}
	f.processed = true
	f.Process, f.PID, f.Depth = r.Process, r.PID, r.Process.Depth
	f.Process.Name, f.Process.Path = strings.Clone(r.Process.Name), strings.Clone(r.Process.Path)
}

func (f *Facts) call(r *trace.Record) {
	f.Calls++
	if f.FirstTime == 0 {
		f.FirstTime = r.Time
	}
}

// size adds a size and records whether the sum exceeds 64 bits.
func (f *Facts) size(n uint64) {
	f.bytes += n
	f.Beyond = f.Beyond || f.bytes < n
}
