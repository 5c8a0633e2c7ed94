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
	if r.PID != e.process.pid && e.opts.Version == V4 {
		k.fields |= hasProcess
	}
	if e.calls++; c.Seq != e.calls {
		k.fields |= hasSequence
		e.calls = c.Seq
	}
	k.fields |= rareFields(c)
	id := e.defined.class(&k)
	e.payload.call(r, k.fields)
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

// call makes the payload of a call, in the order of callFields.
func (p *payload) call(r *trace.Record, has fields) {
	c := &r.Call
	p.begin()
	p.u64(c.ID)
	if has&hasOldAddress != 0 {
		p.u64(c.OldID)
	}
	if has&hasSize != 0 {
		p.u64(c.Size)
	}
	if has&^(hasOldAddress|hasSize) == 0 {
		return
	}
	if has&hasEntryTime != 0 {
		p.i64(c.EntryTime)
	}
	if has&hasTime != 0 {
		p.i64(r.Time)
	}
	if has&hasProcess != 0 {
		p.u32(uint32(r.PID))
	}
	if has&hasSequence != 0 {
		p.u64(c.Seq)
	}
	if has&hasContext != 0 {
		p.u32(c.Context)
	}
	if has&hasIndex != 0 {
		p.u64(c.Index)
	}
	if has&hasThread != 0 {
		p.u64(c.Thread)
	}
	if has&hasCaller != 0 {
		p.text(c.Caller.Function)
		p.text(c.Caller.File)
		p.u64(c.Caller.Line)
	}
	if has&hasArguments != 0 {
		p.text(arguments(c.Args))
	}
	if has&hasFunction != 0 {
		p.text(c.Function)
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
		e.system.tick = e.defined.define(wire.Metadata{
			Provider: wire.ProviderRuntime, EventID: wire.RuntimeAllocationTick, Keywords: 1, Version: 4, Level: 5,
		})
	}
	p := &e.payload
	p.begin()
	p.u32(uint32(min(c.Size, 1<<32-1)))
	p.u32(0)                      // kind: small
	p.data = append(p.data, 0, 0) // instance of the runtime
	p.u64(c.Size)
	p.data = e.process.appendAddress(p.data, 0) // id of the type
	p.data = appendUTF16(p.data, "native."+c.Function[:min(len(c.Function), maxNamed)])
	p.u32(0) // heap
	p.data = e.process.appendAddress(p.data, c.ID)
	p.u64(c.Size) // of the object
	e.place(r.PID, r.TID, r.CPU, stack)
	e.write(e.system.tick, 0)
}
