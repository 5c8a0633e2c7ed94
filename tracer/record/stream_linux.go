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

// MemoryResource is the id of the resource "memory", the calls of allocators, in every
// trace of ours.
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
	last  int64 // time of the last call
}

// settings do not change while a trace lasts.
type settings struct {
	functions    []string           // by the number the events carry
	args         []plan.ArgumentsOf // likewise; nil: calls have none
	minSize      uint64
	backtraceAll bool
	noMemory     bool // no allocator is traced
	anyAllocator bool // whatever serves the process is traced
	pid          int32
	process      *process.Target
}

// hooks are what the stream calls.
type hooks struct {
	describeActivity func(*activity.Event, *trace.Record) bool
	warn             func(format string, args ...any)
	ended            func(tid uint32)                      // after a thread has ended
	moved            func(number int, code process.Extent) // after the code of an allocator has moved
}

// memory is what is known of the blocks of the allocators.
type memory struct {
	blocks *live.Blocks      // nil: live blocks are not tracked; Value is the id of the stack
	early  map[uint64]uint64 // sizes of blocks that kindFreeEarly took
}

// stacks is the stacks of calls, and what checks them.
type stacks struct {
	byHash   map[uint64]*order.StackDef
	checked  map[uint64]*order.StackDef // by id
	copies   *copies
	verifier *verifier // nil: nothing is checked
	Coverage Coverage
}

// functionCalls is the calls of functions that the user names.
type functionCalls struct {
	calls        *functions.Calls
	describeCall func(*functions.Event, *trace.Record) bool
}

// program is what is known of the program that the process runs.
type program struct {
	baseline    uint64 // when reading the first mappings and threads began
	replaced    uint64 // when the process became another program; 0: it has not
	execed      bool   // the process has become another program
	stranger    bool   // what serves that one has no probes
	leaderEnded bool   // the process's main thread, which need not be its end
	loading     bool   // since an exec nothing was mapped
}

// record turns e into a record and says whether there is one: rare records go
// to the queue instead, and what a limit hides has none.
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
		s.ResourceStack(e)
	}
	return false
}

func (s *Stream) alloc(e *order.Event, r *trace.Record) bool {
	if e.Size < s.minSize {
		return false // of a realloc without an old block; the programs leave out the others
	}
	s.Stats.Allocs++
	stack := s.call(e, r, trace.OpAlloc)
	r.Call.Size = e.Size
	s.remember(e, stack)
	return true
}

// remember begins a live block; stack is the id of its stack.
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

// forget ends a live block and says whether its end is to be reported: under a
// size limit an unknown block is one that was too small.
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

// growth says that the heap has grown, unless the trace has begun with that.
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

// call fills what every call has and returns the id of its stack, 0 for none.
func (s *Stream) call(e *order.Event, r *trace.Record, op trace.Op) uint64 {
	r.Call.Function, r.Call.Resource = s.functions[e.Function], MemoryResource
	stack := s.change(e, r, op)
	if s.args != nil {
		r.Call.Args = callArguments(s.args[e.Function], e, op)
	}
	return stack
}

// change is call without what tells whose function it was.
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

// handleSide handles a rare record.
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
		if !s.roster.Rename(x.TID, x.Name, x.Time) {
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
			s.late(r) // calls of the new program count as the old one's
		}
		s.exec(x)
		r.Kind, r.Exec.Name = trace.KindExec, x.Name
	case order.SideExit:
		if s.loading && x.TID == x.PID {
			return // the kernel has taken the events away from a set-user-ID program, which goes on
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
	case order.SidePause:
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

// late counts a side that should have come before what has been passed on: the
// kernel puts a time on such records first and hands them over then, and its CPU
// may be taken away in between. For names, exits and forks that does not matter.
func (s *Stream) late(r trace.Record) {
	s.lost(order.LossLate, 1, &r)
	s.emit(r)
}

// ranThrough says whether stacks of calls later than time have frames in m.
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

// exec voids what belonged to the old program. Of a program from before the first
// mappings were read it is known already whether it has probes.
func (s *Stream) exec(x order.Side) {
	if x.Time >= s.baseline {
		s.Stats.WasUnprobed = s.Stats.WasUnprobed || s.Stats.Unprobed
		s.Stats.Unprobed = true // until a file that has probes is mapped again
		s.execed, s.stranger = true, false
	}
	s.replaced, s.loading = x.Time, true
	// The kernel binds probes to the main thread as it was when they were made. If
	// another one calls exec, that has ended before, and its memory is nobody's.
	s.Stats.LeftBehind = s.Stats.LeftBehind || s.leaderEnded
	s.roster.replaced(x.TID, x.Name, x.Time)
	s.mappings.clear(x.Time)
	s.Coverage.replaced(x.Number)
	s.copies.forget()
	s.calls.Clear()
	s.ForgetResources()
	if s.blocks != nil {
		s.blocks = live.NewBlocks()
	}
	clear(s.early)
}
