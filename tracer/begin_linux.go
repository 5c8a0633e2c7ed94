package tracer

import (
	"os"
	"time"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
)

// streamLinks is what a stream needs of the tracer that it is a part of.
type streamLinks struct {
	moved     func(number int, code extent) // after the code of an allocator has moved
	ended     func(tid uint32)              // after a thread has ended
	baseline  func() baseline
	installed func() (all []mapping, tables bool) // whose unwind tables are in the kernel
}

// baseline is the threads and mappings of a process when a trace begins.
type baseline struct {
	time     uint64 // when reading them began
	threads  []proc.Thread
	mappings []mapping // none if the process has ended
}

// newStream returns the stream of a plan that is attached, with the first records of the
// trace.
func newStream(p *Plan, links streamLinks) *stream {
	target, options := p.target, p.options
	s := &stream{
		settings: settings{
			functions: p.functionNames(), args: p.functionArguments(), minSize: options.MinSize,
			backtraceAll: options.BacktraceAll, noMemory: options.NoMemory, anyAllocator: options.choosesNothing(),
			pid: int32(target.pid), process: target,
		},
		hooks:         hooks{describeActivity: options.Activity.Record, warn: options.warnf, ended: links.ended, moved: links.moved},
		feed:          feed{moves: newMoves()},
		waiting:       newWaiting(),
		stacks:        stacks{byHash: map[uint64]*stackDef{}, checked: map[uint64]*stackDef{}},
		memory:        memory{early: map[uint64]uint64{}},
		functionCalls: functionCalls{calls: functions.NewCalls(os.Getpagesize()), describeCall: options.Functions.Record},
		stats:         Stats{Broken: map[string]uint64{}},
	}
	s.things = newThings(p, s.textLength)
	if all, tables := links.installed(); tables {
		s.coverage.tables = true
		s.coverage.installed(all, 0)
	}
	s.copies = newCopies(target, &options, &s.mappings)
	if options.VerifyUnwind > 0 {
		s.verifier = &verifier{copies: s.copies, log: options.warnf}
	}
	if !options.NoLive {
		s.blocks = live.NewBlocks()
	}
	s.mappings = mappings{modules: map[string]bool{}, file: target.fileInfo, moved: s.relocate, emit: func(r trace.Record) {
		r.PID = s.pid
		s.emit(r)
	}}
	s.begin(&options, links.baseline)
	return s
}

// begin emits the first records.
func (s *stream) begin(options *Options, read func() baseline) {
	now, wall := clock(), time.Now()
	add := func(kind trace.Kind, fill func(r *trace.Record)) {
		r := trace.Record{Kind: kind, Time: int64(now), PID: s.pid}
		fill(&r)
		s.emit(r)
	}
	add(trace.KindHeader, func(r *trace.Record) {
		r.Header = trace.Header{
			Arch: s.process.machine.uname(), PointerSize: int(s.process.machine.word), Clock: trace.ClockMonotonic,
			WallTime: wall.UnixNano(), ClockTime: int64(now), Origin: options.Origin, Ends: true,
		}
	})
	add(trace.KindProcess, func(r *trace.Record) {
		r.Process = s.process.origin()
		r.Process.WallTime, r.Process.Depth = wall.UnixNano(), options.Depth
	})
	s.beginModules(options, add)
	first := read()
	s.baseline = first.time
	s.roster = newRoster(first.threads, s.baseline)
	for _, thread := range first.threads {
		add(trace.KindThread, func(r *trace.Record) {
			r.TID, r.Thread.Name = int32(thread.TID), thread.Name
		})
	}
	s.stats.Unprobed = len(first.mappings) > 0 // until the library is found: it may be another program since the plan was made
	for _, m := range first.mappings {
		m.seen = s.baseline
		s.mappings.add(m, now)
	}
	if options.HeapGrowth {
		s.heap = readHeap(s.process)
	}
	for _, region := range s.heap.regions {
		add(trace.KindHeapGrow, func(r *trace.Record) {
			r.HeapGrow = trace.HeapGrow{Address: region.start, Size: region.end - region.start}
		})
	}
}

// beginModules emits what is traced, and the resources of it.
func (s *stream) beginModules(options *Options, add func(kind trace.Kind, fill func(r *trace.Record))) {
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
	if s.things.recorder != nil {
		for _, resource := range s.things.recorder.Resources() {
			add(trace.KindResource, func(r *trace.Record) { r.Resource = resource })
		}
	}
}
