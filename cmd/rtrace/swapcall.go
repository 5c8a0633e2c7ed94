package main

import (
	"strconv"

	"rtrace-bpf/decoder/swap"
	"rtrace-bpf/trace"
)

// call adds a row for a record of kind Call. A call that waited began that much earlier.
func (l *callList) call(r *trace.Record) {
	if l.first == 0 {
		l.first = r.Time
	}
	l.index++
	resource := l.resources[r.Call.Resource]
	if resource == "" || resource == memoryType {
		l.print(l.row(r, memoryEvent(&r.Call)))
		return
	}
	e, waits := swap.CallEvent(resource, &r.Call)
	row := l.row(r, e)
	if waits {
		row.ended, row.elapsed = true, int64(r.Call.Size)
		row.time -= row.elapsed
	}
	l.print(row)
}

// memoryEvent makes an event of a call of the allocator.
func memoryEvent(c *trace.Call) swap.Event {
	e := swap.Event{Kind: "memory", Function: c.Function}
	size := strconv.FormatUint(c.Size, 10)
	switch c.Op {
	case trace.OpFree:
		e.Args = hexAddress(c.ID)
	case trace.OpMove:
		e.Args, e.Result = hexAddress(c.OldID)+" "+size, hexAddress(c.ID)
	default:
		e.Args, e.Result = size, hexAddress(c.ID)
	}
	if len(c.Args) > 0 {
		e.Args = swap.ArgumentText(c.Args)
	}
	if len(c.Stack.Frames) > 0 {
		e.Caller = c.Stack.Frames[0]
	}
	return e
}
