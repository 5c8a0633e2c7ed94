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
		*id = e.own(wire.OwnRecordID+uint32(row), o.Name, 0, slices.Concat(common, o.Fields))
	}
	stack := e.stack(r.PID, stackOf(r))
	e.time = max(e.time, r.Time)
	e.payload = e.payload[:0]
	e.i64(r.Time)
	e.u32(uint32(r.PID))
	e.recordPayload(r)
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

// recordPayload appends the fields in wire.OwnRecords.
func (e *Writer) recordPayload(r *trace.Record) {
	switch r.Kind {
	case trace.KindHeader:
		h := &r.Header
		e.text(h.Format)
		e.text(h.Version)
		e.text(h.Arch)
		e.flag(h.BigEndian)
		e.u32(uint32(h.PointerSize))
		e.u32(uint32(h.Clock))
		e.i64(h.WallTime)
		e.i64(h.ClockTime)
		e.text(h.Filter)
		e.text(h.Origin)
		e.flag(h.Ends)
	case trace.KindProcess:
		e.text(r.Process.Name)
		e.i64(r.Process.WallTime)
		e.u32(uint32(int32(r.Process.Depth)))
		e.u32(uint32(r.Process.Parent))
		e.i64(r.Process.Started)
		e.text(r.Process.Path)
	case trace.KindThread:
		e.text(r.Thread.Name)
	case trace.KindTracerModule:
		e.u32(r.TracerModule.ID)
		e.u32(uint32(r.TracerModule.Major))
		e.u32(uint32(r.TracerModule.Minor))
		e.text(r.TracerModule.Name)
	case trace.KindResource:
		e.u32(r.Resource.ID)
		e.text(r.Resource.Type)
		e.text(r.Resource.Desc)
		e.flag(r.Resource.RefCount)
		e.flag(r.Resource.Sampled)
	case trace.KindContext:
		e.u32(r.Context.ID)
		e.text(r.Context.Name)
	case trace.KindModule:
		m := &r.Module
		e.text(m.Path)
		e.text(m.BuildID)
		e.u64(m.Inode)
		e.u32(m.Major)
		e.u32(m.Minor)
		e.flag(m.Fixed)
	case trace.KindMapping, trace.KindUnmapping:
		m := &r.Mapping
		e.u64(m.Start)
		e.u64(m.End)
		e.u64(m.Offset)
		e.u64(m.Base)
		e.text(m.Path)
	case trace.KindHeapGrow:
		e.u64(r.HeapGrow.Address)
		e.u64(r.HeapGrow.Size)
		e.flag(r.HeapGrow.Internal)
	case trace.KindHeapInfo:
		e.heapInfo(&r.HeapInfo)
	case trace.KindAttachment:
		e.text(r.Attachment.Name)
		e.text(r.Attachment.Path)
	case trace.KindComment:
		e.text(r.Comment)
	case trace.KindExec:
		e.text(r.Exec.Name)
	case trace.KindExit:
		e.flag(r.Exit.Process)
	case trace.KindLost:
		e.u64(r.Lost.Count)
		e.text(r.Lost.Reason)
		e.i64(r.Lost.Since)
	case trace.KindOpaque:
		e.text(r.Opaque.Format)
		e.u32(r.Opaque.ID)
		e.text(hex.EncodeToString(r.Opaque.Data))
	case trace.KindFunction:
		e.text(r.Function.Name)
		e.u64(r.Function.Start)
		e.u64(r.Function.End)
		e.text(r.Function.Module)
	case trace.KindSample:
		e.text(r.Sample.Name)
		e.u64(r.Sample.Weight)
	case trace.KindRSS:
		e.u64(r.RSS.Bytes)
	case trace.KindEvent:
		e.text(r.Event.Provider)
		e.text(r.Event.Name)
		e.u32(r.Event.ID)
		e.text(arguments(r.Event.Args))
		e.text(hex.EncodeToString(r.Event.Data))
	}
}

func (e *Writer) heapInfo(h *trace.HeapInfo) {
	for _, v := range [...]uint64{
		h.Bottom, h.Top, h.Arena, h.OrdBlks, h.SmBlks, h.HBlks, h.HBlkHd,
		h.UsmBlks, h.FsmBlks, h.UordBlks, h.FordBlks, h.KeepCost,
	} {
		e.u64(v)
	}
}
