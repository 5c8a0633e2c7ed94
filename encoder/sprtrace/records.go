package sprtrace

import (
	"math"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// writeOther writes a record that is not a call. Kinds that are missing here have no
// packet; docs/formats/sprtrace.md lists them.
func (e *Writer) writeOther(r *trace.Record) {
	switch r.Kind {
	case trace.KindHeader:
		e.writeHeader(&r.Header)
		return
	case trace.KindProcess, trace.KindTracerModule, trace.KindResource, trace.KindContext,
		trace.KindMapping, trace.KindHeapInfo, trace.KindAttachment, trace.KindOpaque:
		e.begin()
	case trace.KindEnd:
		if e.header.Ends {
			e.settings(wire.End)
		} else {
			e.stats.Dropped++
		}
		return
	default:
		e.stats.Dropped++
		return
	}
	switch r.Kind {
	case trace.KindProcess:
		e.writeProcess(r.PID, &r.Process)
	case trace.KindTracerModule:
		e.writeTracerModule(&r.TracerModule)
	case trace.KindResource:
		e.writeResource(&r.Resource)
	case trace.KindContext:
		start := e.packet(wire.CTXR)
		e.u32(r.Context.ID)
		e.text(r.Context.Name, e.room(start, 0))
		e.end(start)
	case trace.KindMapping:
		e.writeMapping(&r.Mapping)
	case trace.KindHeapInfo:
		e.writeHeapInfo(&r.HeapInfo)
	case trace.KindAttachment:
		start := e.packet(wire.FILE)
		e.text(r.Attachment.Name, maxName)
		e.text(r.Attachment.Path, e.room(start, 0))
		e.end(start)
	case trace.KindOpaque:
		e.writeOpaque(&r.Opaque)
	}
}

func (e *Writer) writeProcess(pid int32, p *trace.Process) {
	start := e.packet(wire.PINF)
	e.u32(uint32(pid))
	wall := max(p.WallTime, 0)
	e.u32(uint32(wall / 1e9))
	e.u32(uint32(wall % 1e9 / 1e3))
	e.u32(uint32(int32(min(max(p.Depth, -1), maxInt))))
	e.text(p.Name, e.room(start, 0))
	e.end(start)
	e.process = true
}

func (e *Writer) writeTracerModule(m *trace.TracerModule) {
	start := e.packet(wire.MINF)
	e.u32(m.ID)
	e.u32(uint32(m.Major)<<16 | uint32(m.Minor))
	e.text(m.Name, e.room(start, 0))
	e.end(start)
}

func (e *Writer) writeResource(r *trace.Resource) {
	if r.ID < 1 || r.ID > wire.MaxResources {
		e.stats.Dropped++ // beyond the original's table
		return
	}
	e.resources |= 1 << r.ID
	var flags uint32
	if r.RefCount {
		flags = wire.FlagRefCount
	}
	start := e.packet(wire.RESR)
	e.u32(r.ID)
	e.u32(flags)
	e.text(r.Type, maxName)
	e.text(r.Desc, e.room(start, 0))
	e.end(start)
}

// writeMapping writes the start of the file in memory, since original resolvers compute
// addresses relative to it. They do not know offsets, so with the start of the
// executable segment they would find wrong names.
//
// A 32-bit process that becomes a 64-bit program has mappings beyond the addresses of
// its trace. They are left out, because a cut address would be that of something else.
func (e *Writer) writeMapping(m *trace.Mapping) {
	from := m.Start
	if m.Base != 0 && e.opts.Dialect != Document {
		from = m.Base
	}
	if e.order.Pointer == 4 && from|m.End > math.MaxUint32 {
		e.stats.Dropped++
		return
	}
	start := e.packet(wire.MMAP)
	e.ptr(from)
	e.ptr(m.End)
	e.text(m.Path, e.room(start, 0))
	e.end(start)
}

func (e *Writer) writeHeapInfo(h *trace.HeapInfo) {
	start := e.packet(wire.HINF)
	e.ptr(h.Bottom)
	e.ptr(h.Top)
	for _, v := range [...]uint64{
		h.Arena, h.OrdBlks, h.SmBlks, h.HBlks, h.HBlkHd,
		h.UsmBlks, h.FsmBlks, h.UordBlks, h.FordBlks, h.KeepCost,
	} {
		e.count(v)
	}
	e.end(start)
}

func (e *Writer) writeOpaque(o *trace.Opaque) {
	if !e.opts.KeepOpaque || o.Format != format || wire.HeadSize+len(o.Data) > wire.MaxPacket {
		e.stats.Dropped++
		return
	}
	start := e.packet(o.ID)
	e.buf = append(e.buf, o.Data...)
	e.end(start)
}
