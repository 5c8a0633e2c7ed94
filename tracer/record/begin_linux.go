package record

import (
	"os"
	"time"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
)

// StreamLinks connects a Stream to its tracer.
type StreamLinks struct {
	Moved     func(number int, code process.Extent) // called after the code of an allocator moved
	Ended     func(tid uint32)                      // called after a thread ended
	Baseline  func() Baseline
	Installed func() (all []process.Mapping, tables bool) // the mappings whose unwind tables are in the kernel
}

// Baseline contains the threads and mappings of a process at the beginning of a trace.
type Baseline struct {
	Time     uint64 // when reading them began
	Threads  []proc.Thread
	Mappings []process.Mapping // none if the process has ended
}

// NewStream returns the stream of a plan whose probes are attached. It emits the first
// records of the trace.
func NewStream(p *plan.Plan, links StreamLinks) *Stream {
	target, options := p.Target, p.Options
	var args []plan.ArgumentsOf
	if options.Args {
		args = p.Memory.Arguments()
	}
	s := &Stream{
		settings: settings{
			functions: p.Memory.Names(), args: args, minSize: options.MinSize,
			backtraceAll: options.BacktraceAll, noMemory: options.NoMemory, anyAllocator: options.ChoosesNothing(),
			pid: int32(target.PID), process: target,
		},
		hooks:         hooks{describeActivity: options.Activity.Record, warn: options.Warnf, ended: links.Ended, moved: links.Moved},
		feed:          feed{moves: newMoves()},
		waiting:       newWaiting(),
		stacks:        stacks{byHash: map[uint64]*order.StackDef{}, checked: map[uint64]*order.StackDef{}},
		memory:        memory{early: map[uint64]uint64{}},
		functionCalls: functionCalls{calls: functions.NewCalls(os.Getpagesize()), describeCall: options.Functions.Record},
		Stats:         Stats{Broken: map[string]uint64{}},
	}
	s.Resources = newResources(p, s.textLength)
	if all, tables := links.Installed(); tables {
		s.Coverage.tables = true
		s.Coverage.installed(all, 0)
	}
	s.copies = newCopies(target, &options, &s.mappings)
	if options.VerifyUnwind > 0 {
		s.verifier = &verifier{copies: s.copies, log: options.Warnf}
	}
	if !options.NoLive {
		s.blocks = live.NewBlocks()
	}
	s.mappings = mappings{modules: map[string]bool{}, file: target.FileInfo, moved: s.relocate, emit: func(r trace.Record) {
		r.PID = s.pid
		s.emit(r)
	}}
	s.begin(&options, links.Baseline)
	return s
}

// begin emits the first records.
func (s *Stream) begin(options *plan.Options, read func() Baseline) {
	now, wall := order.Clock(), time.Now()
	add := func(kind trace.Kind, fill func(r *trace.Record)) {
		r := trace.Record{Kind: kind, Time: int64(now), PID: s.pid}
		fill(&r)
		s.emit(r)
	}
	add(trace.KindHeader, func(r *trace.Record) {
		r.Header = trace.Header{
			Arch: s.process.Machine.Uname(), PointerSize: int(s.process.Machine.Word), Clock: trace.ClockMonotonic,
			WallTime: wall.UnixNano(), ClockTime: int64(now), Origin: options.Origin, Ends: true,
		}
	})
	add(trace.KindProcess, func(r *trace.Record) {
		r.Process = s.process.Origin()
		r.Process.WallTime, r.Process.Depth = wall.UnixNano(), options.Depth
	})
	s.beginModules(options, add)
	first := read()
	s.baseline = first.Time
	s.roster = newRoster(first.Threads, s.baseline)
	for _, thread := range first.Threads {
		add(trace.KindThread, func(r *trace.Record) {
			r.TID, r.Thread.Name = int32(thread.TID), thread.Name
		})
	}
	s.Stats.Unprobed = len(first.Mappings) > 0 // until an allocator is found: the process may have executed another program since the plan was made
	for _, m := range first.Mappings {
		m.Seen = s.baseline
		s.mappings.add(m, now)
	}
	if options.HeapGrowth {
		s.heap = readHeap(s.process)
	}
	for _, region := range s.heap.Regions {
		add(trace.KindHeapGrow, func(r *trace.Record) {
			r.HeapGrow = trace.HeapGrow{Address: region.Start, Size: region.End - region.Start}
		})
	}
}

// beginModules emits the records of the traced modules and their resources.
func (s *Stream) beginModules(options *plan.Options, add func(kind trace.Kind, fill func(r *trace.Record))) {
	add(trace.KindTracerModule, func(r *trace.Record) {
		r.TracerModule = trace.TracerModule{ID: 0, Major: 1, Name: "main"}
	})
	modules := []string{"memory"}
	if options.NoMemory {
		modules = nil
	}
	for _, m := range options.Modules {
		modules = append(modules, m.Name)
	}
	for i, name := range modules {
		add(trace.KindTracerModule, func(r *trace.Record) {
			r.TracerModule = trace.TracerModule{ID: 1 << i, Major: 1, Name: name}
		})
	}
	if !options.NoMemory {
		add(trace.KindResource, func(r *trace.Record) {
			r.Resource = trace.Resource{ID: MemoryResource, Type: "memory", Desc: "memory allocation in bytes"}
		})
	}
	if s.Resources.recorder != nil {
		for _, resource := range s.Resources.recorder.Resources() {
			add(trace.KindResource, func(r *trace.Record) { r.Resource = resource })
		}
	}
}
