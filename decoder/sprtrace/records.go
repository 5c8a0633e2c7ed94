package sprtrace

import (
	"fmt"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// start resets the fields that all records share.
func (d *Reader) start(rec *trace.Record, kind trace.Kind) {
	rec.Kind = kind
	rec.Time = 0
	rec.PID = d.pid
	rec.TID, rec.CPU = 0, 0
}

func (d *Reader) readHeader(rec *trace.Record) {
	d.start(rec, trace.KindHeader)
	hs := &d.w.hs
	rec.Header = trace.Header{
		Format:      wire.Format,
		Version:     fmt.Sprintf("%d.%d", hs.Version.Major(), hs.Version.Minor()),
		Arch:        hs.Arch,
		BigEndian:   d.w.order.Big,
		PointerSize: d.w.order.Pointer,
		Clock:       trace.ClockDay,
		Ends:        d.ends,
	}
}

func (d *Reader) readOpaque(rec *trace.Record, code uint32, data []byte) {
	d.start(rec, trace.KindOpaque)
	rec.Opaque = trace.Opaque{Format: wire.Format, ID: code, Data: data}
}

// setRecord makes a record of the fields of a packet.
func (d *Reader) setRecord(rec *trace.Record, code uint32, vals []Value) {
	switch code {
	case wire.PINF:
		d.setProcess(rec, vals)
	case wire.MINF:
		d.setTracerModule(rec, vals)
	case wire.RESR:
		d.setResource(rec, vals)
	case wire.CTXR:
		d.start(rec, trace.KindContext)
		rec.Context = trace.Context{ID: uint32(vals[0].Num), Name: d.names.get(vals[1].Text.Bytes)}
	case wire.MMAP:
		d.start(rec, trace.KindMapping)
		rec.Mapping = trace.Mapping{Start: vals[0].Num, End: vals[1].Num, Path: d.names.get(vals[2].Text.Bytes)}
	case wire.FILE:
		d.start(rec, trace.KindAttachment)
		rec.Attachment = trace.Attachment{
			Name: d.names.get(vals[0].Text.Bytes), Path: d.names.get(vals[1].Text.Bytes),
		}
	case wire.HINF:
		d.setHeapInfo(rec, vals)
	}
}

func (d *Reader) setProcess(rec *trace.Record, vals []Value) {
	p := trace.Process{Depth: -1}
	for _, v := range vals {
		switch v.Field.Name {
		case "pid":
			d.pid = int32(v.Num)
		case "secs":
			p.WallTime += int64(v.Num) * 1e9
		case "usecs":
			p.WallTime += int64(v.Num) * 1e3
		case "depth":
			p.Depth = int(int64(v.Num))
		case "name":
			p.Name = d.names.get(v.Text.Bytes)
		}
	}
	d.start(rec, trace.KindProcess)
	rec.Process = p
}

func (d *Reader) setTracerModule(rec *trace.Record, vals []Value) {
	d.start(rec, trace.KindTracerModule)
	version := vals[1].Num
	rec.TracerModule = trace.TracerModule{
		ID: uint32(vals[0].Num), Major: uint16(version >> 16), Minor: uint16(version), Name: d.names.get(vals[2].Text.Bytes),
	}
}

func (d *Reader) setResource(rec *trace.Record, vals []Value) {
	var r trace.Resource
	for _, v := range vals {
		switch v.Field.Name {
		case "id":
			r.ID = uint32(v.Num)
		case "flags":
			r.RefCount = v.Num&wire.FlagRefCount != 0
		case "type":
			r.Type = d.names.get(v.Text.Bytes)
		case "desc":
			r.Desc = d.names.get(v.Text.Bytes)
		}
	}
	d.start(rec, trace.KindResource)
	rec.Resource = r
}

func (d *Reader) setHeapInfo(rec *trace.Record, vals []Value) {
	d.start(rec, trace.KindHeapInfo)
	h := &rec.HeapInfo
	into := [...]*uint64{
		&h.Bottom, &h.Top, &h.Arena, &h.OrdBlks, &h.SmBlks, &h.HBlks, &h.HBlkHd,
		&h.UsmBlks, &h.FsmBlks, &h.UordBlks, &h.FordBlks, &h.KeepCost,
	}
	for i, v := range vals {
		*into[i] = v.Num
		if d.opts.Legacy && v.Field.Type == wire.Dword { // an int in the original
			*into[i] = uint64(int64(int32(v.Num)))
		}
	}
}
