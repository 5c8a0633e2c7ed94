package record

import (
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// allocatorCalls makes records of the calls of allocators. With a size limit it leaves out
// the calls for smaller blocks.
type allocatorCalls struct {
	functions []string           // by the number that events contain
	args      []plan.ArgumentsOf // by the same number; nil if calls have no arguments
	minSize   uint64
	callers   bool      // calls have no stacks, and in their place the return address: see stack_or_caller in bpf/stack.h
	operators operators // that give their names by the return address
	heads     *heads
	blocks    liveBlocks
	stats     *Stats
	differs   differences // what Options.VerifySites found
}

func (a *allocatorCalls) alloc(e *order.Event, r *trace.Record) bool {
	if e.Size < a.minSize {
		return false // the return of a realloc without an old block; the programs filter the others
	}
	a.stats.Allocs++
	stack := a.fill(e, r, trace.OpAlloc)
	r.Call.Size = e.Size
	a.blocks.begin(e, stack)
	return true
}

func (a *allocatorCalls) free(e *order.Event, r *trace.Record) bool {
	if !a.blocks.end(e.Addr) && !a.unmatched() {
		return false
	}
	a.stats.Frees++
	a.fill(e, r, trace.OpFree)
	return true
}

// unmatched counts the end of a block that is not known, and reports whether that end is to
// be recorded: with a size limit, the block was too small.
func (a *allocatorCalls) unmatched() bool {
	if a.minSize > 0 {
		return false
	}
	a.stats.Unmatched++
	return true
}

func (a *allocatorCalls) move(e *order.Event, r *trace.Record) bool {
	if a.minSize > 0 && e.Size < a.minSize {
		e.Addr = e.Old
		return a.free(e, r)
	}
	if !a.blocks.end(e.Old) && !a.unmatched() {
		return a.alloc(e, r)
	}
	a.stats.Moves++
	stack := a.fill(e, r, trace.OpMove)
	r.Call.OldID, r.Call.Size, r.Call.EntryTime = e.Old, e.Size, int64(e.Entry)
	a.blocks.begin(e, stack)
	return true
}

// freeEarly records that a realloc took too long.
func (a *allocatorCalls) freeEarly(e *order.Event, r *trace.Record) bool {
	a.blocks.keepSize(e.Addr)
	return a.free(e, r)
}

// allocAgain records that a realloc failed whose block freeEarly freed.
func (a *allocatorCalls) allocAgain(e *order.Event, r *trace.Record) bool {
	size, known := a.blocks.keptSize(e.Addr)
	if !known {
		return false
	}
	e.Size = size
	return a.alloc(e, r)
}

// fill fills in what all calls of allocators have. It returns the ID of the stack, 0 for
// none.
func (a *allocatorCalls) fill(e *order.Event, r *trace.Record, op trace.Op) uint64 {
	caller := uint64(0) // 0 if it is not known
	if a.callers {
		caller, e.Stack = e.Stack, 0
	}
	r.Call.Function, r.Call.Resource = a.functions[e.Function], MemoryResource
	stack := a.heads.fill(e, r, op)
	if frames := r.Call.Stack.Frames; len(frames) > 0 {
		caller = frames[0]
	}
	if op == trace.OpAlloc {
		if name := a.operators.calling(caller); name != "" {
			r.Call.Function = name
		}
	}
	if a.args != nil {
		r.Call.Args = callArguments(a.args[e.Function], e, op)
	}
	return stack
}
