package record

import (
	"fmt"

	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// program follows the program that the process runs, and whether its allocators have probes.
type program struct {
	pid          int32
	process      *process.Target
	anyAllocator bool                                  // the plan traces whatever allocator the process uses
	noMemory     bool                                  // no allocator is traced
	moved        func(number int, code process.Extent) // called after the code of an allocator moved
	ended        func(tid uint32)                      // called after a thread ended
	stats        *Stats

	baseline    uint64 // when reading the first mappings and threads began
	replaced    uint64 // when the process last replaced its program; 0 if it has not
	execed      bool   // the process has replaced its program
	stranger    bool   // the allocator of the new program has no probes
	leaderEnded bool   // the main thread has ended; the process may continue
	loading     bool   // no mapping was recorded since an exec
}

// exec notes that the process replaced its program. For an exec before the baseline it is
// already known whether the program has probes.
func (p *program) exec(x *order.Side) {
	if x.Time >= p.baseline {
		p.stats.WasUnprobed = p.stats.WasUnprobed || p.stats.Unprobed
		p.stats.Unprobed = true // until a file with probes is mapped again
		p.execed, p.stranger = true, false
	}
	p.replaced, p.loading = x.Time, true
	// The kernel binds probes to the main thread that existed when they were made. If
	// another thread calls exec after the main thread has ended, the probes do not apply
	// to the new program.
	p.stats.LeftBehind = p.stats.LeftBehind || p.leaderEnded
}

// threadEnded notes that a thread of the process ended.
func (p *program) threadEnded(x *order.Side) {
	p.leaderEnded = p.leaderEnded || x.TID == x.PID
	p.ended(x.TID)
}

// between returns the time in which records were dropped, in seconds of the trace.
func (p *program) between(x order.Side) string {
	seconds := func(time uint64) float64 { return float64(max(time, p.baseline)-p.baseline) / 1e9 }
	return fmt.Sprintf("from %.3f s to %.3f s of the trace", seconds(x.Since), seconds(x.Time))
}

// relocate reports the new place of an allocator's code after m was mapped: a new program
// has it elsewhere.
func (p *program) relocate(m process.Mapping, info process.FileInfo) {
	known := false
	for i := range p.process.Texts {
		x := &p.process.Texts[i]
		if m.ID() != x.File {
			continue
		}
		known = true
		if code := x.In(m, info); code != x.Code {
			x.Code = code
			p.moved(i, code)
		}
	}
	switch {
	case known:
		p.stats.Unprobed = p.stranger
	case p.execed && p.stats.Unprobed && p.anyAllocator && p.process.Defines(m):
		p.stranger = true
	}
}
