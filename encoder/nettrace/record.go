package nettrace

import (
	"encoding/hex"
	"fmt"
	"slices"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// rows holds the row of wire.OwnRecords for each kind.
var rows = func() (all [256]struct {
	at    int
	known bool
},
) {
	for i := range wire.OwnRecords {
		if k, ok := trace.ParseKind(wire.OwnRecords[i].Kind); ok {
			all[k].at, all[k].known = i, true
		}
	}
	return all
}()

// common are the first fields of all records but calls.
var common = []wire.Field{{Name: wire.OwnTime, Type: wire.TypeInt64}, {Name: wire.OwnProcess, Type: wire.TypeInt32}}

// writeRecord writes a record that is not a call.
func (e *Writer) writeRecord(r *trace.Record) error {
	row := rows[r.Kind].at
	if !rows[r.Kind].known {
		return fmt.Errorf("nettrace: writing a record of %v", r.Kind)
	}
	id := &e.defined.records[row]
	if *id == 0 {
		o := &wire.OwnRecords[row]
		*id = e.defined.own(wire.OwnRecordID+uint32(row), o.Name, 0, slices.Concat(common, o.Fields))
	}
	stack := e.stack(r.PID, stackOf(r))
	e.time = max(e.time, r.Time)
	e.payload.begin()
	e.payload.i64(r.Time)
	e.payload.u32(uint32(r.PID))
	e.payload.record(r)
	e.place(r.PID, r.TID, r.CPU, stack)
	var gap uint32
	if r.Kind == trace.KindLost {
		gap = uint32(min(r.Lost.Count, wire.OwnMaxGap))
	}
	e.write(*id, gap)
	return nil
}

// stackOf returns the stack of a record that is not a call, or nil.
func stackOf(r *trace.Record) *trace.Stack {
	switch r.Kind {
	case trace.KindSample:
		return &r.Sample.Stack
	case trace.KindEvent:
		return &r.Event.Stack
	}
	return &trace.Stack{}
}

// record appends the fields in wire.OwnRecords.
func (p *payload) record(r *trace.Record) {
	switch r.Kind {
	case trace.KindHeader:
		h := &r.Header
		p.text(h.Format)
		p.text(h.Version)
		p.text(h.Arch)
		p.flag(h.BigEndian)
		p.u32(uint32(h.PointerSize))
		p.u32(uint32(h.Clock))
		p.i64(h.WallTime)
		p.i64(h.ClockTime)
		p.text(h.Filter)
		p.text(h.Origin)
		p.flag(h.Ends)
	case trace.KindProcess:
		p.text(r.Process.Name)
		p.i64(r.Process.WallTime)
		p.u32(uint32(int32(r.Process.Depth)))
		p.u32(uint32(r.Process.Parent))
		p.i64(r.Process.Started)
		p.text(r.Process.Path)
	case trace.KindThread:
		p.text(r.Thread.Name)
	case trace.KindTracerModule:
		p.u32(r.TracerModule.ID)
		p.u32(uint32(r.TracerModule.Major))
		p.u32(uint32(r.TracerModule.Minor))
		p.text(r.TracerModule.Name)
	case trace.KindResource:
		p.u32(r.Resource.ID)
		p.text(r.Resource.Type)
		p.text(r.Resource.Desc)
		p.flag(r.Resource.RefCount)
		p.flag(r.Resource.Sampled)
	case trace.KindContext:
		p.u32(r.Context.ID)
		p.text(r.Context.Name)
	case trace.KindModule:
		m := &r.Module
		p.text(m.Path)
		p.text(m.BuildID)
		p.u64(m.Inode)
		p.u32(m.Major)
		p.u32(m.Minor)
		p.flag(m.Fixed)
	case trace.KindMapping, trace.KindUnmapping:
		m := &r.Mapping
		p.u64(m.Start)
		p.u64(m.End)
		p.u64(m.Offset)
		p.u64(m.Base)
		p.text(m.Path)
	case trace.KindHeapGrow:
		p.u64(r.HeapGrow.Address)
		p.u64(r.HeapGrow.Size)
		p.flag(r.HeapGrow.Internal)
	case trace.KindHeapInfo:
		p.heapInfo(&r.HeapInfo)
	case trace.KindAttachment:
		p.text(r.Attachment.Name)
		p.text(r.Attachment.Path)
	case trace.KindComment:
		p.text(r.Comment)
	case trace.KindExec:
		p.text(r.Exec.Name)
	case trace.KindExit:
		p.flag(r.Exit.Process)
	case trace.KindLost:
		p.u64(r.Lost.Count)
		p.text(r.Lost.Reason)
		p.i64(r.Lost.Since)
	case trace.KindOpaque:
		p.text(r.Opaque.Format)
		p.u32(r.Opaque.ID)
		p.text(hex.EncodeToString(r.Opaque.Data))
	case trace.KindFunction:
		p.text(r.Function.Name)
		p.u64(r.Function.Start)
		p.u64(r.Function.End)
		p.text(r.Function.Module)
	case trace.KindSample:
		p.text(r.Sample.Name)
		p.u64(r.Sample.Weight)
	case trace.KindRSS:
		p.u64(r.RSS.Bytes)
	case trace.KindWindow:
		p.u64(r.Window.Weight)
		p.i64(r.Window.Until)
		p.i64(r.Window.Stretch)
		p.i64(r.Window.Used)
		p.i64(r.Window.Added)
		p.u64(r.Window.Doubt)
	case trace.KindCost:
		c := &r.Cost
		p.i64(c.Used)
		p.i64(c.Added)
		p.i64(c.Tracer)
		p.u64(c.Budget)
		p.u64(c.Worst)
		p.u64(c.Over)
		p.i64(c.Covered)
		p.i64(c.Longest)
	case trace.KindEvent:
		p.text(r.Event.Provider)
		p.text(r.Event.Name)
		p.u32(r.Event.ID)
		p.text(arguments(r.Event.Args))
		p.text(hex.EncodeToString(r.Event.Data))
	}
}

func (p *payload) heapInfo(h *trace.HeapInfo) {
	for _, v := range [...]uint64{
		h.Bottom, h.Top, h.Arena, h.OrdBlks, h.SmBlks, h.HBlks, h.HBlkHd,
		h.UsmBlks, h.FsmBlks, h.UordBlks, h.FordBlks, h.KeepCost,
	} {
		p.u64(v)
	}
}
