package record

import (
	"os"
	"time"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
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
	target, options := p.Target, &p.Options
	s := connected(int32(target.PID))
	s.calls.functions, s.calls.minSize = p.Memory.Names(), options.MinSize
	s.calls.callers = options.Frames() == 0
	s.calls.operators.begin(p, &s.mappings)
	if options.Args {
		s.calls.args = p.Memory.Arguments()
	}
	if !options.NoLive {
		s.calls.blocks.blocks = live.NewBlocks()
	}
	s.functions.describe, s.activity.describe = options.Functions.Record, options.Activity.Record
	s.program.process, s.program.noMemory, s.program.anyAllocator = target, options.NoMemory, options.ChoosesNothing()
	s.program.ended, s.program.moved = links.Ended, links.Moved
	s.mappings.file, s.warn = target.FileInfo, options.Warnf
	s.resources.begin(p, texts{s.program.pid, &s.mappings}.length)
	if all, tables := links.Installed(); tables {
		s.stacks.coverage.tables = true
		s.stacks.coverage.installed(all, 0)
	}
	s.stacks.copies = newCopies(target, options, &s.mappings)
	if options.VerifyUnwind > 0 {
		s.stacks.verifier = &verifier{copies: s.stacks.copies, log: options.Warnf}
	}
	s.calls.differs = differences{warn: options.Warnf, plan: p}
	s.begin(options, links.Baseline)
	if options.Faults {
		s.pages = &pages{calls: &s.calls, stacks: &s.stacks, out: &s.out}
		s.pages.begin(target, !options.FaultEvents())
	}
	return s
}

// connected returns a stream of the process pid whose parts know each other and are empty.
func connected(pid int32) *Stream {
	s := &Stream{Stats: Stats{Broken: map[string]uint64{}}}
	s.feed.moves = newMoves()
	s.sides.waiting = map[uint64]order.Side{}
	s.mappings = mappings{modules: map[string]bool{}, moved: s.moved, emit: func(r trace.Record) {
		r.PID = pid
		s.out.emit(r)
	}}
	s.program = program{pid: pid, stats: &s.Stats}
	s.stacks = stacks{
		byHash: map[uint64]*order.StackDef{}, checked: map[uint64]*order.StackDef{}, raws: map[uint64]*order.RawStack{},
		mappings: &s.mappings, stats: &s.Stats,
	}
	s.heads = heads{stacks: &s.stacks, stats: &s.Stats}
	s.calls = allocatorCalls{
		heads: &s.heads, stats: &s.Stats,
		blocks: liveBlocks{pid: pid, early: map[uint64]uint64{}, stats: &s.Stats},
	}
	s.activity = activities{pid: pid, waiting: map[uint64]activity.Event{}}
	open := functions.NewCalls(os.Getpagesize())
	s.resources = resources{
		pid: pid, open: open, callers: callers{open: open, mappings: &s.mappings}, waiting: map[uint32]actions{},
		heads: &s.heads, out: &s.out, stats: &s.Stats,
	}
	s.functions = functionCalls{
		pid: pid, waiting: map[uint64]functions.Event{}, open: functions.NewCalls(os.Getpagesize()),
		resources: &s.resources, out: &s.out,
	}
	return s
}

// moved passes on that m was mapped.
func (s *Stream) moved(m process.Mapping, info process.FileInfo) {
	s.program.relocate(m, info)
	s.calls.operators.moved(m, info)
}

// begin emits the first records.
func (s *Stream) begin(options *plan.Options, read func() Baseline) {
	now, wall := order.Clock(), time.Now()
	target := s.program.process
	add := func(kind trace.Kind, fill func(r *trace.Record)) {
		r := trace.Record{Kind: kind, Time: int64(now), PID: s.program.pid}
		fill(&r)
		s.out.emit(r)
	}
	add(trace.KindHeader, func(r *trace.Record) {
		r.Header = trace.Header{
			Arch: target.Machine.Uname(), PointerSize: int(target.Machine.Word), Clock: trace.ClockMonotonic,
			WallTime: wall.UnixNano(), ClockTime: int64(now), Origin: options.Origin, Ends: true,
		}
	})
	add(trace.KindProcess, func(r *trace.Record) {
		r.Process = target.Origin()
		r.Process.WallTime, r.Process.Depth = wall.UnixNano(), options.Depth
	})
	s.beginModules(options, add)
	first := read()
	s.program.baseline = first.Time
	s.threads = newRoster(first.Threads, first.Time)
	for _, thread := range first.Threads {
		add(trace.KindThread, func(r *trace.Record) {
			r.TID, r.Thread.Name = int32(thread.TID), thread.Name
		})
	}
	s.Stats.Unprobed = len(first.Mappings) > 0 // until an allocator is found: the process may have executed another program since the plan was made
	for _, m := range first.Mappings {
		m.Seen = first.Time
		s.mappings.add(m, now)
	}
	if options.HeapGrowth {
		s.heap = readHeap(target)
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
	if options.Faults {
		modules = append(modules, "growth")
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
	if options.Faults {
		add(trace.KindResource, func(r *trace.Record) {
			r.Resource = trace.Resource{ID: MemoryResource, Type: residentType, Desc: residentDetail}
		})
	}
	if s.resources.recorder != nil {
		for _, resource := range s.resources.recorder.Resources() {
			add(trace.KindResource, func(r *trace.Record) { r.Resource = resource })
		}
	}
}
