package jsonrecord

import "rtrace-bpf/trace"

// field reads the value of a member that records of r's kind have, and reports whether
// they have it.
func (p *Parser) field(r *trace.Record, key []byte) bool {
	switch r.Kind {
	case trace.KindCall:
		return p.call(&r.Call, key)
	case trace.KindHeader:
		return p.header(&r.Header, key)
	case trace.KindModule:
		return p.module(&r.Module, key)
	case trace.KindMapping, trace.KindUnmapping:
		return p.mapping(&r.Mapping, key)
	case trace.KindHeapInfo:
		return p.heapInfo(&r.HeapInfo, key)
	case trace.KindTracerModule:
		return p.tracerModule(&r.TracerModule, key)
	case trace.KindResource:
		return p.resource(&r.Resource, key)
	case trace.KindFunction:
		return p.function(&r.Function, key)
	case trace.KindSample:
		return p.sample(&r.Sample, key)
	case trace.KindEvent:
		return p.event(&r.Event, key)
	case trace.KindWindow:
		return p.window(&r.Window, key)
	case trace.KindCost:
		return p.cost(&r.Cost, key)
	}
	return p.fewMembers(r, key)
}

// fewMembers is field for the kinds with one to six members.
func (p *Parser) fewMembers(r *trace.Record, key []byte) bool {
	type member struct {
		kind trace.Kind
		key  string
	}
	switch (member{r.Kind, string(key)}) {
	case member{trace.KindProcess, "name"}:
		p.string(&r.Process.Name)
	case member{trace.KindProcess, "wall_time"}:
		p.int64(&r.Process.WallTime)
	case member{trace.KindProcess, "depth"}:
		p.small(&r.Process.Depth)
	case member{trace.KindProcess, "parent"}:
		p.int32(&r.Process.Parent)
	case member{trace.KindProcess, "started"}:
		p.int64(&r.Process.Started)
	case member{trace.KindProcess, "path"}:
		p.string(&r.Process.Path)
	case member{trace.KindThread, "name"}:
		p.string(&r.Thread.Name)
	case member{trace.KindContext, "id"}:
		p.uint32(&r.Context.ID)
	case member{trace.KindContext, "name"}:
		p.string(&r.Context.Name)
	case member{trace.KindHeapGrow, "address"}:
		p.addr(&r.HeapGrow.Address)
	case member{trace.KindHeapGrow, "size"}:
		p.uint64(&r.HeapGrow.Size)
	case member{trace.KindHeapGrow, "internal"}:
		p.bool(&r.HeapGrow.Internal)
	case member{trace.KindAttachment, "name"}:
		p.string(&r.Attachment.Name)
	case member{trace.KindAttachment, "path"}:
		p.string(&r.Attachment.Path)
	case member{trace.KindComment, "text"}:
		p.string(&r.Comment)
	case member{trace.KindExec, "name"}:
		p.string(&r.Exec.Name)
	case member{trace.KindExit, "process"}:
		p.bool(&r.Exit.Process)
	case member{trace.KindLost, "count"}:
		p.uint64(&r.Lost.Count)
	case member{trace.KindLost, "reason"}:
		p.string(&r.Lost.Reason)
	case member{trace.KindLost, "since"}:
		p.int64(&r.Lost.Since)
	case member{trace.KindRSS, "bytes"}:
		p.uint64(&r.RSS.Bytes)
	case member{trace.KindOpaque, "format"}:
		p.string(&r.Opaque.Format)
	case member{trace.KindOpaque, "id"}:
		p.uint32(&r.Opaque.ID)
	case member{trace.KindOpaque, "data"}:
		r.Opaque.Data = p.bytes()
	default:
		return false
	}
	return true
}

func (p *Parser) window(w *trace.Window, key []byte) bool {
	switch string(key) {
	case "weight":
		p.uint64(&w.Weight)
	case "until":
		p.int64(&w.Until)
	case "stretch":
		p.int64(&w.Stretch)
	case "used":
		p.int64(&w.Used)
	case "added":
		p.int64(&w.Added)
	case "doubt":
		p.uint64(&w.Doubt)
	default:
		return false
	}
	return true
}

func (p *Parser) cost(c *trace.Cost, key []byte) bool {
	switch string(key) {
	case "used":
		p.int64(&c.Used)
	case "added":
		p.int64(&c.Added)
	case "tracer":
		p.int64(&c.Tracer)
	case "budget":
		p.uint64(&c.Budget)
	case "worst":
		p.uint64(&c.Worst)
	case "over":
		p.uint64(&c.Over)
	case "covered":
		p.int64(&c.Covered)
	case "longest":
		p.int64(&c.Longest)
	default:
		return false
	}
	return true
}

func (p *Parser) call(c *trace.Call, key []byte) bool {
	switch string(key) {
	case "seq":
		p.uint64(&c.Seq)
	case "op":
		c.Op = trace.Op(p.Enum(parseOp))
	case "function":
		p.string(&c.Function)
	case "resource":
		p.uint32(&c.Resource)
	case "id":
		p.addr(&c.ID)
	case "old_id":
		p.addr(&c.OldID)
	case "size":
		p.uint64(&c.Size)
	case "entry_time":
		p.int64(&c.EntryTime)
	case "context":
		p.uint32(&c.Context)
	case "index":
		p.uint64(&c.Index)
	case "caller":
		p.string(&c.Caller.Function)
	case "file":
		p.string(&c.Caller.File)
	case "line":
		p.uint64(&c.Caller.Line)
	case "thread":
		p.uint64(&c.Thread)
	case "args":
		c.Args = p.args()
	default:
		return p.stack(&c.Stack, key)
	}
	return true
}

func (p *Parser) header(h *trace.Header, key []byte) bool {
	switch string(key) {
	case "format":
		p.string(&h.Format)
	case "version":
		p.string(&h.Version)
	case "arch":
		p.string(&h.Arch)
	case "big_endian":
		p.bool(&h.BigEndian)
	case "pointer_size":
		p.small(&h.PointerSize)
	case "clock":
		h.Clock = trace.Clock(p.Enum(parseClock))
	case "wall_time":
		p.int64(&h.WallTime)
	case "clock_time":
		p.int64(&h.ClockTime)
	case "filter":
		p.string(&h.Filter)
	case "origin":
		p.string(&h.Origin)
	case "ends":
		p.bool(&h.Ends)
	default:
		return false
	}
	return true
}

func (p *Parser) module(m *trace.Module, key []byte) bool {
	switch string(key) {
	case "path":
		p.string(&m.Path)
	case "build_id":
		p.string(&m.BuildID)
	case "inode":
		p.uint64(&m.Inode)
	case "major":
		p.uint32(&m.Major)
	case "minor":
		p.uint32(&m.Minor)
	case "fixed":
		p.bool(&m.Fixed)
	default:
		return false
	}
	return true
}

func (p *Parser) mapping(m *trace.Mapping, key []byte) bool {
	switch string(key) {
	case "start":
		p.addr(&m.Start)
	case "end":
		p.addr(&m.End)
	case "offset":
		p.addr(&m.Offset)
	case "base":
		p.addr(&m.Base)
	case "path":
		p.string(&m.Path)
	default:
		return false
	}
	return true
}

func (p *Parser) tracerModule(m *trace.TracerModule, key []byte) bool {
	switch string(key) {
	case "id":
		p.uint32(&m.ID)
	case "major":
		p.uint16(&m.Major)
	case "minor":
		p.uint16(&m.Minor)
	case "name":
		p.string(&m.Name)
	default:
		return false
	}
	return true
}

func (p *Parser) resource(res *trace.Resource, key []byte) bool {
	switch string(key) {
	case "id":
		p.uint32(&res.ID)
	case "type":
		p.string(&res.Type)
	case "desc":
		p.string(&res.Desc)
	case "refcount":
		p.bool(&res.RefCount)
	case "sampled":
		p.bool(&res.Sampled)
	default:
		return false
	}
	return true
}

func (p *Parser) heapInfo(h *trace.HeapInfo, key []byte) bool {
	switch string(key) {
	case "bottom":
		p.addr(&h.Bottom)
	case "top":
		p.addr(&h.Top)
	case "arena":
		p.uint64(&h.Arena)
	case "ordblks":
		p.uint64(&h.OrdBlks)
	case "smblks":
		p.uint64(&h.SmBlks)
	case "hblks":
		p.uint64(&h.HBlks)
	case "hblkhd":
		p.uint64(&h.HBlkHd)
	case "usmblks":
		p.uint64(&h.UsmBlks)
	case "fsmblks":
		p.uint64(&h.FsmBlks)
	case "uordblks":
		p.uint64(&h.UordBlks)
	case "fordblks":
		p.uint64(&h.FordBlks)
	case "keepcost":
		p.uint64(&h.KeepCost)
	default:
		return false
	}
	return true
}
