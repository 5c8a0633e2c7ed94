package sprtrace

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// writeCall writes CALL, ARGS and BTRC, twice for OpMove, and first the declarations
// that a reader needs.
func (e *Writer) writeCall(r *trace.Record) {
	c := &r.Call
	if CallPackets(c) == 0 {
		e.stats.Dropped++
		return
	}
	e.begin()
	if !e.process {
		e.writeProcess(r.PID, &trace.Process{WallTime: e.header.WallTime, Depth: -1})
	}
	resource := e.resource(c.Resource)
	switch c.Op {
	case trace.OpMove:
		t := c.EntryTime
		if t == 0 {
			t = r.Time
		}
		var stack []uint64
		if e.opts.BacktraceAll {
			stack = c.Stack.Frames
		}
		e.event(c, resource, t, wire.CallFree, c.OldID, 0, nil, stack)
		e.event(c, resource, r.Time, wire.CallAlloc, c.ID, c.Size, c.Args, c.Stack.Frames)
	case trace.OpAlloc:
		e.event(c, resource, r.Time, wire.CallAlloc, c.ID, c.Size, c.Args, c.Stack.Frames)
	case trace.OpFree:
		// Only allocations have a size; readers may distinguish layouts by that.
		e.event(c, resource, r.Time, wire.CallFree, c.ID, 0, c.Args, c.Stack.Frames)
	case trace.OpNone:
		e.event(c, resource, r.Time, wire.CallUndefined, c.ID, c.Size, c.Args, c.Stack.Frames)
	}
}

// resource returns the resource number for CALL. It declares the resource if no record
// did: a reader must know the id, and the original's table ends at 32.
func (e *Writer) resource(id uint32) uint32 {
	if id > wire.MaxResources {
		e.stats.Clamped++
		return 0
	}
	if id == 0 {
		return 0
	}
	if e.resources&(1<<id) == 0 {
		e.writeResource(&trace.Resource{ID: id, Type: "unknown"})
	}
	if e.opts.Dialect == Document && e.resources == 1<<id {
		return 0 // in the document: 0 if there is only one
	}
	return id
}

// event writes the packets of one change of a resource.
func (e *Writer) event(c *trace.Call, resource uint32, t int64, kind uint32, id, size uint64, args []trace.Arg, frames []uint64) {
	if size > maxInt {
		size = maxInt
		e.stats.Clamped++
	}
	ms := e.timestamp(t)
	start := e.packet(wire.CALL)
	if e.opts.Dialect == Document {
		e.u32(ms)
		e.u32(resource)
		e.u32(c.Context)
	} else {
		e.u32(resource)
		e.u32(c.Context)
		e.u32(ms)
	}
	e.u32(kind)
	e.text(c.Function, e.room(start, 4+e.order.Pointer))
	if e.opts.Dialect == Document {
		e.ptr(id)
		e.u32(uint32(size))
	} else {
		e.u32(uint32(size))
		e.ptr(id)
	}
	e.end(start)
	e.stats.Calls++
	if e.opts.Dialect == Document {
		e.stack(frames)
		e.args(args)
	} else {
		e.args(args)
		e.stack(frames)
	}
}

// timestamp returns milliseconds modulo a day. 0 means no time. A time is never 0, and
// never before the previous one except where the day wraps around, because the original
// tools take both for damage.
func (e *Writer) timestamp(t int64) uint32 {
	if t <= 0 {
		return 0
	}
	ms := uint32(t / 1e6 % wire.DayMillis)
	if ms == 0 {
		ms = 1
	}
	if ms < e.last && e.last-ms < wire.DayMillis/2 {
		ms = e.last
	}
	e.last = ms
	return ms
}

func (e *Writer) stack(frames []uint64) {
	if len(frames) > wire.MaxFrames {
		e.stats.CutStacks++
		e.stats.CutFrames += uint64(len(frames) - wire.MaxFrames)
		frames = frames[:wire.MaxFrames]
	}
	start := e.packet(wire.BTRC)
	e.u32(uint32(len(frames)))
	if e.order.Pointer == 8 && !e.order.Big {
		for _, f := range frames {
			e.buf = binary.LittleEndian.AppendUint64(e.buf, f)
		}
	} else {
		for _, f := range frames {
			e.ptr(f)
		}
	}
	e.end(start)
}

// args writes as many arguments as fit.
func (e *Writer) args(args []trace.Arg) {
	if len(args) == 0 {
		return
	}
	start := e.packet(wire.ARGS)
	e.u32(0)
	n := 0
	for _, a := range args {
		// The whole name and a part of the value.
		least := wire.TextSize(uint16(min(len(a.Name), maxName))) + 4
		if e.room(start, least) < 0 {
			break
		}
		e.text(a.Name, maxName)
		e.text(a.Value, e.room(start, 0))
		n++
	}
	e.stats.CutArgs += uint64(len(args) - n)
	e.order.PutU32(e.buf[start+wire.HeadSize:], uint32(n))
	e.end(start)
}
