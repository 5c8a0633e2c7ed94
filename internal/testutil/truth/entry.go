package truth

import (
	"fmt"

	"rtrace-bpf/trace"
)

// Entry is a call of the allocator that the shim logged.
type Entry struct {
	Function   string // the function that was called
	Canonical  string // its name in a trace
	Done       bool   // the call returned
	Old        uint64 // block that was passed
	Made       uint64 // block that was returned, 0 if none or if the call did not return
	Size       uint64 // requested size
	Begin, End int64  // CLOCK_MONOTONIC, ns; End is 0 if the call did not return
	Frames     []uint64
}

// Event is the effect of a call, which is what logs and traces have in common.
type Event struct {
	Op       trace.Op
	Function string
	Old      uint64 // freed or moved
	Made     uint64 // allocated, or where it was moved to
	Size     uint64 // 0 for a free
}

// String prints the event on one line.
func (v Event) String() string {
	switch v.Op {
	case trace.OpNone:
		return "nothing by " + v.Function
	case trace.OpFree:
		return fmt.Sprintf("free  %#x by %s", v.Old, v.Function)
	case trace.OpMove:
		return fmt.Sprintf("move  %#x to %#x, %d bytes by %s", v.Old, v.Made, v.Size, v.Function)
	}
	return fmt.Sprintf("alloc %#x, %d bytes by %s", v.Made, v.Size, v.Function)
}

// moves reports whether the function can move a block.
func moves(function string) bool { return function == "realloc" || function == "reallocarray" }

// Event returns the effect of the call. A call that did not return counts as if it had done
// nothing, unless it is a free.
func (e *Entry) Event() Event {
	v := Event{Function: e.Canonical, Old: e.Old, Made: e.Made, Size: e.Size}
	switch {
	case e.Made != 0 && e.Old != 0:
		v.Op = trace.OpMove
	case e.Made != 0:
		v.Op = trace.OpAlloc
	case e.Old != 0 && (e.Function == "free" || moves(e.Function) && e.Size == 0 && e.Done):
		v.Op, v.Size = trace.OpFree, 0
	}
	return v
}

// undone reports whether e is a realloc that failed, so that the old block is left.
func (e *Entry) undone() bool {
	return e.Done && moves(e.Function) && e.Made == 0 && e.Old != 0 && e.Size != 0
}

// String prints the call on one line.
func (e *Entry) String() string {
	text := e.Event().String()
	if e.Function != e.Canonical {
		text += " (called " + e.Function + ")"
	}
	if !e.Done {
		text += fmt.Sprintf(", which did not return (block %#x, size %d)", e.Old, e.Size)
	}
	return fmt.Sprintf("%s at %d to %d", text, e.Begin, e.End)
}

// eventOf returns the event of a record of a call.
func eventOf(c *trace.Call) Event {
	v := Event{Op: c.Op, Function: c.Function, Old: c.OldID, Made: c.ID, Size: c.Size}
	if c.Op == trace.OpFree {
		v.Old, v.Made = c.ID, 0
	}
	return v
}
