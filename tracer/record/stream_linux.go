package record

import (
	"slices"
	"time"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
)

// MemoryResource is the ID of the resource "memory", the calls of allocators, in every
// trace that the tracer writes.
const MemoryResource = 1

// Stream turns the collector's events into records.
type Stream struct {
	settings
	outbox
	feed
	waiting
	stacks
	program
	functionCalls
	Resources Resources
	mappings  mappings
	roster    roster
	heap      Heap
	memory
	hooks

	Stats Stats
	seq   uint64
	last  int64 // time of the last call, in ns
}

// settings are constant while a trace lasts.
type settings struct {
	functions    []string           // by the number that events contain
	args         []plan.ArgumentsOf // by the same number; nil if calls have no arguments
	minSize      uint64
	backtraceAll bool
	noMemory     bool // no allocator is traced
	anyAllocator bool // the plan traces whatever allocator the process uses
	pid          int32
	process      *process.Target
}

// hooks are the functions that the stream calls.
type hooks struct {
	describeActivity func(*activity.Event, *trace.Record) bool
	warn             func(format string, args ...any)
	ended            func(tid uint32)                      // after a thread ended
	moved            func(number int, code process.Extent) // after the code of an allocator moved
}

// memory holds what is known of the allocators' blocks.
type memory struct {
	blocks *live.Blocks      // nil if live blocks are not tracked; Value is the ID of the stack
	early  map[uint64]uint64 // sizes of the blocks that kindFreeEarly freed
}

// stacks holds the stacks of calls, and what checks them.
type stacks struct {
	byHash   map[uint64]*order.StackDef
	checked  map[uint64]*order.StackDef // by id
	copies   *copies
	verifier *verifier // nil if no stacks are checked
	Coverage Coverage
}

// functionCalls holds the open calls of traced functions.
type functionCalls struct {
	calls        *functions.Calls
	describeCall func(*functions.Event, *trace.Record) bool
}

// program holds what is known of the program that the process runs.
type program struct {
	baseline    uint64 // when reading the first mappings and threads began
	replaced    uint64 // when the process last replaced its program; 0 if it has not
	execed      bool   // the process has replaced its program
	stranger    bool   // the allocator of the new program has no probes
	leaderEnded bool   // the main thread has ended; the process may continue
	loading     bool   // no mapping was recorded since an exec
}

// record turns e into a record and reports whether r has it. Rare records go to the queue
// instead, and calls below the size limit have no record.
func (s *Stream) record(e *order.Event, r *trace.Record) bool {
	switch e.Kind {
	case order.KindAlloc:
		return s.alloc(e, r)
	case order.KindFree:
		return s.free(e, r)
	case order.KindMove:
		return s.move(e, r)
	case kindFreeEarly:
		if s.blocks != nil {
			if b, fate := s.blocks.Get(s.pid, MemoryResource, e.Addr); fate != live.Absent {
				s.early[e.Addr] = b.Size
			}
		}
		return s.free(e, r)
	case kindAllocAgain:
		e.Size = s.early[e.Addr]
		delete(s.early, e.Addr)
		return s.alloc(e, r)
	case order.KindGrowth:
		return s.growth(e, r)
	case order.KindSide:
		s.handleSide(e.Addr)
	case order.KindRaw:
		s.raw(e.Addr)
	case order.KindActivity:
		return s.activity(e, r)
	case order.KindFunction:
		return s.function(e, r)
	case order.KindCallStack:
		s.resourceStack(e)
	}
	return false
}

func (s *Stream) alloc(e *order.Event, r *trace.Record) bool {
	if e.Size < s.minSize {
		return false // the return of a realloc without an old block; the programs filter the others
	}
	s.Stats.Allocs++
	stack := s.call(e, r, trace.OpAlloc)
	r.Call.Size = e.Size
	s.remember(e, stack)
	return true
}

// remember begins a live block; stack is the ID of its stack.
func (s *Stream) remember(e *order.Event, stack uint64) {
	if s.blocks == nil {
		return
	}
	if _, fate := s.blocks.Insert(s.pid, MemoryResource, e.Addr, e.Size, stack); fate == live.Known {
		s.Stats.Replaced++
	}
}

func (s *Stream) free(e *order.Event, r *trace.Record) bool {
	if !s.forget(e.Addr) {
		return false
	}
	s.Stats.Frees++
	s.call(e, r, trace.OpFree)
	return true
}

// forget ends a live block and reports whether its end is to be recorded: with a size
// limit, a block that is not known was too small.
func (s *Stream) forget(addr uint64) bool {
	if s.blocks == nil {
		return true
	}
	if _, fate := s.blocks.Free(s.pid, MemoryResource, addr); fate == live.Absent {
		if s.minSize > 0 {
			return false
		}
		s.Stats.Unmatched++
	}
	return true
}

func (s *Stream) move(e *order.Event, r *trace.Record) bool {
	if s.minSize > 0 && e.Size < s.minSize {
		e.Addr = e.Old
		return s.free(e, r)
	}
	if !s.forget(e.Old) {
		return s.alloc(e, r)
	}
	s.Stats.Moves++
	stack := s.call(e, r, trace.OpMove)
	r.Call.OldID, r.Call.Size, r.Call.EntryTime = e.Old, e.Size, int64(e.Entry)
	s.remember(e, stack)
	return true
}

// growth makes a record of heap growth, unless the first records of the trace include it.
func (s *Stream) growth(e *order.Event, r *trace.Record) bool {
	if s.heap.Includes(e) {
		return false
	}
	*r = trace.Record{
		Kind: trace.KindHeapGrow, Time: int64(e.Time), PID: int32(e.PID), TID: int32(e.TID), CPU: int32(e.CPU) + 1,
		HeapGrow: trace.HeapGrow{Address: e.Addr, Size: e.Size},
	}
	return true
}

// call fills in what all calls of allocators have. It returns the ID of the stack, 0 for
// none.
func (s *Stream) call(e *order.Event, r *trace.Record, op trace.Op) uint64 {
	r.Call.Function, r.Call.Resource = s.functions[e.Function], MemoryResource
	stack := s.change(e, r, op)
	if s.args != nil {
		r.Call.Args = callArguments(s.args[e.Function], e, op)
	}
	return stack
}

// change is call without the function, its arguments and the resource.
func (s *Stream) change(e *order.Event, r *trace.Record, op trace.Op) uint64 {
	s.seq++
	s.last = int64(e.Time)
	s.Stats.Calls++
	r.Kind = trace.KindCall
	r.Time = int64(e.Time)
	r.PID, r.TID, r.CPU = int32(e.PID), int32(e.TID), int32(e.CPU)+1
	c := &r.Call
	c.Seq, c.Op, c.ID = s.seq, op, e.Addr
	c.OldID, c.Size, c.EntryTime, c.Context, c.Args = 0, 0, 0, 0, nil
	c.Stack = trace.Stack{}
	if e.Stack == 0 {
		return 0
	}
	def := s.describe(e.Stack, &c.Stack)
	s.Stats.Stacks[c.Stack.End]++
	if c.Stack.FramePointer {
		s.Stats.FramePointer[c.Stack.End]++
	}
	if c.Stack.End == trace.StackFailed {
		s.Stats.Broken[c.Stack.Reason]++
	}
	if def == nil {
		return 0
	}
	def.Used = e.Time
	return def.ID
}

// handleSide handles a side.
func (s *Stream) handleSide(id uint64) {
	x, ok := s.side(id)
	if !ok {
		return
	}
	r := trace.Record{Time: int64(x.Time), PID: int32(x.PID), TID: int32(x.TID)}
	switch x.Kind {
	case order.SideMap:
		s.mapped(x, r)
		return
	case order.SideTables:
		s.Coverage.installed(x.Snapshot, x.Number+1)
		return
	case order.SideSnapshot:
		s.mappings.replace(x.Snapshot, x.Seen, x.Time)
		return
	case order.SideAudit:
		s.audit(x, r)
		return
	case order.SideName:
		if !s.roster.rename(x.TID, x.Name, x.Time) {
			return
		}
		r.Kind, r.Thread.Name = trace.KindThread, x.Name
	case order.SideThread:
		s.roster.made(x.TID, x.Parent, x.Time)
		return
	case order.SideMark:
		r.Kind, r.PID, r.Context.Name = trace.KindContext, s.pid, x.Name
	case order.SideExec:
		if r.Time < s.last {
			s.late(r) // calls of the new program were recorded as those of the old one
		}
		s.exec(x)
		r.Kind, r.Exec.Name = trace.KindExec, x.Name
	case order.SideExit:
		if s.loading && x.TID == x.PID {
			return // the kernel has closed the events of a set-user-ID program, which continues
		}
		s.leaderEnded = s.leaderEnded || x.TID == x.PID
		s.roster.left(x.TID, x.Time)
		s.ended(x.TID)
		s.calls.Forget(x.TID)
		s.Resources.forget(x.TID)
		r.Kind, r.Exit.Process = trace.KindExit, false
	case order.SideFork:
		s.Stats.Forks++
		return
	case order.SideWork:
		s.Stats.Work = x.Work
		return
	case order.SideDrops:
		s.lost(x.Reason, x.Lost, &r)
	case order.SideGap:
		if x.Reason == order.LossPaused {
			s.Stats.Paused += time.Duration(x.Time - x.Seen)
		}
		s.lost(x.Reason, 1, &r)
		r.Lost.Since = int64(x.Seen)
		if s.blocks != nil {
			s.blocks.Lost(&r, nil)
		}
	}
	s.emit(r)
}

// late counts a side that should have come before records already passed on. The kernel
// sets the time of such a record before it hands the record over, and its CPU may be
// taken away in between. Names, exits and forks may come late without a loss.
func (s *Stream) late(r trace.Record) {
	s.lost(order.LossLate, 1, &r)
	s.emit(r)
}

// ranThrough reports whether the stack of a call after time has a frame in m.
func (s *Stream) ranThrough(m process.Mapping, time uint64) bool {
	if int64(time) >= s.last {
		return false
	}
	for _, def := range s.checked {
		if def.Used > time && slices.ContainsFunc(def.Frames, m.Contains) {
			return true
		}
	}
	return false
}

func (s *Stream) lost(reason order.Loss, n uint64, r *trace.Record) {
	s.Stats.Lost[reason] += n
	r.Kind = trace.KindLost
	r.Lost = trace.Lost{Count: n, Reason: reason.String(), Since: s.last}
}

// exec drops what belonged to the old program. For an exec before the baseline it is
// already known whether the program has probes.
func (s *Stream) exec(x order.Side) {
	if x.Time >= s.baseline {
		s.Stats.WasUnprobed = s.Stats.WasUnprobed || s.Stats.Unprobed
		s.Stats.Unprobed = true // until a file with probes is mapped again
		s.execed, s.stranger = true, false
	}
	s.replaced, s.loading = x.Time, true
	// The kernel binds probes to the main thread that existed when they were made. If
	// another thread calls exec after the main thread has ended, the probes do not apply
	// to the new program.
	s.Stats.LeftBehind = s.Stats.LeftBehind || s.leaderEnded
	s.roster.replaced(x.TID, x.Name, x.Time)
	s.mappings.clear(x.Time)
	s.Coverage.replaced(x.Number)
	s.copies.forget()
	s.calls.Clear()
	s.forgetResources()
	if s.blocks != nil {
		s.blocks = live.NewBlocks()
	}
	clear(s.early)
}
