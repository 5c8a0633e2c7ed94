package record

import (
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
)

// heads fills in what the records of all calls have: number, time, thread and stack.
type heads struct {
	seq    uint64
	last   int64 // time of the last call, in ns
	stacks *stacks
	stats  *Stats
}

// fill makes r the record of a call, without its function, arguments and resource. It
// returns the ID of the stack, 0 for none.
func (h *heads) fill(e *order.Event, r *trace.Record, op trace.Op) uint64 {
	h.seq++
	h.last = int64(e.Time)
	h.stats.Calls++
	r.Kind = trace.KindCall
	r.Time = int64(e.Time)
	r.PID, r.TID, r.CPU = int32(e.PID), int32(e.TID), int32(e.CPU)+1
	c := &r.Call
	c.Seq, c.Op, c.ID = h.seq, op, e.Addr
	c.OldID, c.Size, c.EntryTime, c.Context, c.Args = 0, 0, 0, 0, nil
	c.Stack = trace.Stack{}
	if e.Stack == 0 {
		return 0
	}
	def := h.stacks.describe(e.Stack, &c.Stack)
	h.stats.Stacks[c.Stack.End]++
	if c.Stack.FramePointer {
		h.stats.FramePointer[c.Stack.End]++
	}
	if c.Stack.End == trace.StackFailed {
		h.stats.Broken[c.Stack.Reason]++
	}
	if def == nil {
		return 0
	}
	def.Used = e.Time
	return def.ID
}
