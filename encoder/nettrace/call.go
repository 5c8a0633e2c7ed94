package nettrace

import (
	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// writeCall writes a call and everything that its event refers to.
func (e *Writer) writeCall(r *trace.Record) {
	c := &r.Call
	stack := e.stack(r.PID, &c.Stack)
	k := class{op: min(c.Op, trace.OpMove+1), resource: c.Resource, function: c.Function}
	if c.Op == trace.OpMove || c.OldID != 0 {
		k.fields = hasOldAddress
	}
	if c.Op != trace.OpFree || c.Size != 0 {
		k.fields |= hasSize
	}
	if r.Time < e.time {
		k.fields |= hasTime
	} else {
		e.time = r.Time
	}
	if r.PID != e.pid && e.opts.Version == V4 {
		k.fields |= hasProcess
	}
	if e.calls++; c.Seq != e.calls {
		k.fields |= hasSequence
		e.calls = c.Seq
	}
	k.fields |= rareFields(c)
	id := e.class(&k)
	e.callPayload(r, k.fields)
	e.place(r.PID, r.TID, r.CPU, stack)
	e.write(id, 0)
	if e.opts.View == ViewAllocTick && (c.Op == trace.OpAlloc || c.Op == trace.OpMove) {
		e.allocTick(r, stack)
	}
}

// rareFields returns the fields that only few calls have.
func rareFields(c *trace.Call) fields {
	var f fields
	if c.EntryTime != 0 {
		f |= hasEntryTime
	}
	if c.Context != 0 {
		f |= hasContext
	}
	if c.Index != 0 {
		f |= hasIndex
	}
	if c.Thread != 0 {
		f |= hasThread
	}
	if c.Caller != (trace.Caller{}) {
		f |= hasCaller
	}
	if len(c.Args) > 0 {
		f |= hasArguments
	}
	return f
}

// callPayload makes the payload of a call, in the order of callFields.
func (e *Writer) callPayload(r *trace.Record, has fields) {
	c := &r.Call
	e.payload = e.payload[:0]
	e.u64(c.ID)
	if has&hasOldAddress != 0 {
		e.u64(c.OldID)
	}
	if has&hasSize != 0 {
		e.u64(c.Size)
	}
	if has&^(hasOldAddress|hasSize) == 0 {
		return
	}
	if has&hasEntryTime != 0 {
		e.i64(c.EntryTime)
	}
	if has&hasTime != 0 {
		e.i64(r.Time)
	}
	if has&hasProcess != 0 {
		e.u32(uint32(r.PID))
	}
	if has&hasSequence != 0 {
		e.u64(c.Seq)
	}
	if has&hasContext != 0 {
		e.u32(c.Context)
	}
	if has&hasIndex != 0 {
		e.u64(c.Index)
	}
	if has&hasThread != 0 {
		e.u64(c.Thread)
	}
	if has&hasCaller != 0 {
		e.text(c.Caller.Function)
		e.text(c.Caller.File)
		e.u64(c.Caller.Line)
	}
	if has&hasArguments != 0 {
		e.text(arguments(c.Args))
	}
	if has&hasFunction != 0 {
		e.text(c.Function)
	}
}

// arguments returns the field Arguments.
func arguments(args []trace.Arg) string {
	var b []byte
	for _, a := range args {
		b = append(appendEscaped(b, a.Name), '\t')
		b = append(appendEscaped(b, a.Value), '\n')
	}
	return string(b)
}

// allocTick writes the event by which PerfView counts allocations, with the time and
// thread of the call.
func (e *Writer) allocTick(r *trace.Record, stack uint32) {
	c := &r.Call
	if e.system.tick == 0 {
		e.system.tick = e.define(wire.Metadata{
			Provider: wire.ProviderRuntime, EventID: wire.RuntimeAllocationTick, Keywords: 1, Version: 4, Level: 5,
		})
	}
	e.payload = e.payload[:0]
	e.u32(uint32(min(c.Size, 1<<32-1)))
	e.u32(0)                            // kind: small
	e.payload = append(e.payload, 0, 0) // instance of the runtime
	e.u64(c.Size)
	e.address(0) // id of the type
	e.payload = appendUTF16(e.payload, "native."+c.Function[:min(len(c.Function), maxNamed)])
	e.u32(0) // heap
	e.address(c.ID)
	e.u64(c.Size) // of the object
	e.place(r.PID, r.TID, r.CPU, stack)
	e.write(e.system.tick, 0)
}

// address appends an address in the size of the process.
func (e *Writer) address(v uint64) {
	if e.pointer == 4 {
		e.u32(uint32(v))
	} else {
		e.u64(v)
	}
}
