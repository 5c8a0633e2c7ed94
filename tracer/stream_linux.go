package tracer

import (
	"slices"
	"time"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/functions"
)

// MemoryResource is the id of the resource "memory", the calls of allocators, in every
// trace of ours.
const MemoryResource = 1

// stream turns the collector's events into records.
type stream struct {
	settings
	outbox
	feed
	waiting
	stacks
	program
	functionCalls
	things   things
	mappings mappings
	roster   roster
	heap     heap
	memory
	hooks

	stats Stats
	seq   uint64
	last  int64 // time of the last call
}

// settings do not change while a trace lasts.
type settings struct {
	functions    []string      // by the number the events carry
	args         []argumentsOf // likewise; nil: calls have none
	minSize      uint64
	backtraceAll bool
	noMemory     bool // no allocator is traced
	anyAllocator bool // whatever serves the process is traced
	pid          int32
	process      *target
}

// hooks are what the stream calls.
type hooks struct {
	describeActivity func(*activity.Event, *trace.Record) bool
	warn             func(format string, args ...any)
	ended            func(tid uint32)              // after a thread has ended
	moved            func(number int, code extent) // after the code of an allocator has moved
}

// memory is what is known of the blocks of the allocators.
type memory struct {
	blocks *live.Blocks      // nil: live blocks are not tracked; Value is the id of the stack
	early  map[uint64]uint64 // sizes of blocks that kindFreeEarly took
}

// stacks is the stacks of calls, and what checks them.
type stacks struct {
	byHash   map[uint64]*stackDef
	checked  map[uint64]*stackDef // by id
	copies   *copies
	verifier *verifier // nil: nothing is checked
	coverage coverage
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
func (s *stream) record(e *event, r *trace.Record) bool {
	switch e.kind {
	case kindAlloc:
		return s.alloc(e, r)
	case kindFree:
		return s.free(e, r)
	case kindMove:
		return s.move(e, r)
	case kindFreeEarly:
		if s.blocks != nil {
			if b, fate := s.blocks.Get(s.pid, MemoryResource, e.addr); fate != live.Absent {
				s.early[e.addr] = b.Size
			}
		}
		return s.free(e, r)
	case kindAllocAgain:
		e.size = s.early[e.addr]
		delete(s.early, e.addr)
		return s.alloc(e, r)
	case kindGrowth:
		return s.growth(e, r)
	case kindSide:
		s.handleSide(e.addr)
	case kindRaw:
		s.raw(e.addr)
	case kindActivity:
		return s.activity(e, r)
	case kindFunction:
		return s.function(e, r)
	case kindCallStack:
		s.thingStack(e)
	}
	return false
}

func (s *stream) alloc(e *event, r *trace.Record) bool {
	if e.size < s.minSize {
		return false // of a realloc without an old block; the programs leave out the others
	}
	s.stats.Allocs++
	stack := s.call(e, r, trace.OpAlloc)
	r.Call.Size = e.size
	s.remember(e, stack)
	return true
}

// remember begins a live block; stack is the id of its stack.
func (s *stream) remember(e *event, stack uint64) {
	if s.blocks == nil {
		return
	}
	if _, fate := s.blocks.Insert(s.pid, MemoryResource, e.addr, e.size, stack); fate == live.Known {
		s.stats.Replaced++
	}
}

func (s *stream) free(e *event, r *trace.Record) bool {
	if !s.forget(e.addr) {
		return false
	}
	s.stats.Frees++
	s.call(e, r, trace.OpFree)
	return true
}

// forget ends a live block and says whether its end is to be reported: under a
// size limit an unknown block is one that was too small.
func (s *stream) forget(addr uint64) bool {
	if s.blocks == nil {
		return true
	}
	if _, fate := s.blocks.Free(s.pid, MemoryResource, addr); fate == live.Absent {
		if s.minSize > 0 {
			return false
		}
		s.stats.Unmatched++
	}
	return true
}

func (s *stream) move(e *event, r *trace.Record) bool {
	if s.minSize > 0 && e.size < s.minSize {
		e.addr = e.old
		return s.free(e, r)
	}
	if !s.forget(e.old) {
		return s.alloc(e, r)
	}
	s.stats.Moves++
	stack := s.call(e, r, trace.OpMove)
	r.Call.OldID, r.Call.Size, r.Call.EntryTime = e.old, e.size, int64(e.entry)
	s.remember(e, stack)
	return true
}

// growth says that the heap has grown, unless the trace has begun with that.
func (s *stream) growth(e *event, r *trace.Record) bool {
	if s.heap.told(e) {
		return false
	}
	*r = trace.Record{
		Kind: trace.KindHeapGrow, Time: int64(e.time), PID: int32(e.pid), TID: int32(e.tid), CPU: int32(e.cpu) + 1,
		HeapGrow: trace.HeapGrow{Address: e.addr, Size: e.size},
	}
	return true
}

// call fills what every call has and returns the id of its stack, 0 for none.
func (s *stream) call(e *event, r *trace.Record, op trace.Op) uint64 {
	r.Call.Function, r.Call.Resource = s.functions[e.function], MemoryResource
	stack := s.change(e, r, op)
	if s.args != nil {
		r.Call.Args = callArguments(s.args[e.function], e, op)
	}
	return stack
}

// change is call without what tells whose function it was.
func (s *stream) change(e *event, r *trace.Record, op trace.Op) uint64 {
	s.seq++
	s.last = int64(e.time)
	s.stats.Calls++
	r.Kind = trace.KindCall
	r.Time = int64(e.time)
	r.PID, r.TID, r.CPU = int32(e.pid), int32(e.tid), int32(e.cpu)+1
	c := &r.Call
	c.Seq, c.Op, c.ID = s.seq, op, e.addr
	c.OldID, c.Size, c.EntryTime, c.Context, c.Args = 0, 0, 0, 0, nil
	c.Stack = trace.Stack{}
	if e.stack == 0 {
		return 0
	}
	def := s.describe(e.stack, &c.Stack)
	s.stats.Stacks[c.Stack.End]++
	if c.Stack.FramePointer {
		s.stats.FramePointer[c.Stack.End]++
	}
	if c.Stack.End == trace.StackFailed {
		s.stats.Broken[c.Stack.Reason]++
	}
	if def == nil {
		return 0
	}
	def.used = e.time
	return def.id
}

// handleSide handles a rare record.
func (s *stream) handleSide(id uint64) {
	x, ok := s.side(id)
	if !ok {
		return
	}
	r := trace.Record{Time: int64(x.time), PID: int32(x.pid), TID: int32(x.tid)}
	switch x.kind {
	case sideMap:
		s.mapped(x, r)
		return
	case sideTables:
		s.coverage.installed(x.snapshot, x.number+1)
		return
	case sideSnapshot:
		s.mappings.replace(x.snapshot, x.seen, x.time)
		return
	case sideAudit:
		s.audit(x, r)
		return
	case sideName:
		if !s.roster.named(x.tid, x.name, x.time) {
			return
		}
		r.Kind, r.Thread.Name = trace.KindThread, x.name
	case sideThread:
		s.roster.made(x.tid, x.parent, x.time)
		return
	case sideMark:
		r.Kind, r.PID, r.Context.Name = trace.KindContext, s.pid, x.name
	case sideExec:
		if r.Time < s.last {
			s.late(r) // calls of the new program count as the old one's
		}
		s.exec(x)
		r.Kind, r.Exec.Name = trace.KindExec, x.name
	case sideExit:
		if s.loading && x.tid == x.pid {
			return // the kernel has taken the events away from a set-user-ID program, which goes on
		}
		s.leaderEnded = s.leaderEnded || x.tid == x.pid
		s.roster.left(x.tid, x.time)
		s.ended(x.tid)
		s.calls.Forget(x.tid)
		s.things.forget(x.tid)
		r.Kind, r.Exit.Process = trace.KindExit, false
	case sideFork:
		s.stats.Forks++
		return
	case sideWork:
		s.stats.Work = x.work
		return
	case sideDrops:
		s.lost(x.reason, x.lost, &r)
	case sidePause:
		if x.reason == LossPaused {
			s.stats.Paused += time.Duration(x.time - x.seen)
		}
		s.lost(x.reason, 1, &r)
		r.Lost.Since = int64(x.seen)
		if s.blocks != nil {
			s.blocks.Lost(&r, nil)
		}
	}
	s.emit(r)
}

// late counts a side that should have come before what has been passed on: the
// kernel puts a time on such records first and hands them over then, and its CPU
// may be taken away in between. For names, exits and forks that does not matter.
func (s *stream) late(r trace.Record) {
	s.lost(LossLate, 1, &r)
	s.emit(r)
}

// ranThrough says whether stacks of calls later than time have frames in m.
func (s *stream) ranThrough(m mapping, time uint64) bool {
	if int64(time) >= s.last {
		return false
	}
	for _, def := range s.checked {
		if def.used > time && slices.ContainsFunc(def.frames, m.contains) {
			return true
		}
	}
	return false
}

func (s *stream) lost(reason Loss, n uint64, r *trace.Record) {
	s.stats.Lost[reason] += n
	r.Kind = trace.KindLost
	r.Lost = trace.Lost{Count: n, Reason: reason.String(), Since: s.last}
}

// exec voids what belonged to the old program. Of a program from before the first
// mappings were read it is known already whether it has probes.
func (s *stream) exec(x side) {
	if x.time >= s.baseline {
		s.stats.WasUnprobed = s.stats.WasUnprobed || s.stats.Unprobed
		s.stats.Unprobed = true // until a file that has probes is mapped again
		s.execed, s.stranger = true, false
	}
	s.replaced, s.loading = x.time, true
	// The kernel binds probes to the main thread as it was when they were made. If
	// another one calls exec, that has ended before, and its memory is nobody's.
	s.stats.LeftBehind = s.stats.LeftBehind || s.leaderEnded
	s.roster.replaced(x.tid, x.name, x.time)
	s.mappings.clear(x.time)
	s.coverage.replaced(x.number)
	s.copies.forget()
	s.calls.Clear()
	s.forgetThings()
	if s.blocks != nil {
		s.blocks = live.NewBlocks()
	}
	clear(s.early)
}
