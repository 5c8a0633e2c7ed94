package nettrace

import (
	"rtrace-bpf/trace"
)

// ownReadings read the fields of a record that is not a call.
type ownReadings struct {
	d *Reader
	p *ownPlan
}

func (r ownReadings) text(name string) string { return r.d.ownString(r.p, ownFields[name]) }
func (r ownReadings) u64(name string) uint64  { return r.d.own.number(r.p, ownFields[name]) }
func (r ownReadings) u32(name string) uint32  { return uint32(r.u64(name)) }
func (r ownReadings) i64(name string) int64   { return int64(r.u64(name)) }
func (r ownReadings) flag(name string) bool   { return r.u64(name) != 0 }

// ownRecord reads a record that is not a call.
func (d *Reader) ownRecord(e *Event, rec *trace.Record, plan *plan) (err error) {
	p := plan.own
	if err := d.own.read(p, e.Payload); err != nil {
		return err
	}
	d.startOwn(rec, e, p, p.kind)
	f := ownReadings{d, p}
	switch p.kind {
	case trace.KindHeader:
		rec.Header = trace.Header{
			Format: f.text("Format"), Version: f.text("Version"), Arch: f.text("Arch"), BigEndian: f.flag("BigEndian"),
			PointerSize: int(int32(f.u32("PointerSize"))), Clock: trace.Clock(f.u32("Clock")), WallTime: f.i64("WallTime"),
			ClockTime: f.i64("ClockTime"), Filter: f.text("Filter"), Origin: f.text("Origin"), Ends: f.flag("Ends"),
		}
	case trace.KindProcess:
		rec.Process = trace.Process{
			Name: f.text("Name"), WallTime: f.i64("WallTime"), Depth: int(int32(f.u32("Depth"))),
			Parent: int32(f.u32("Parent")), Started: f.i64("Started"), Path: f.text("Path"),
		}
	case trace.KindThread:
		rec.Thread.Name = f.text("Name")
	case trace.KindTracerModule:
		rec.TracerModule = trace.TracerModule{
			ID: f.u32("ID"), Major: uint16(f.u32("Major")), Minor: uint16(f.u32("Minor")), Name: f.text("Name"),
		}
	case trace.KindResource:
		rec.Resource = trace.Resource{
			ID: f.u32("ID"), Type: f.text("Type"), Desc: f.text("Desc"), RefCount: f.flag("RefCount"), Sampled: f.flag("Sampled"),
		}
	case trace.KindContext:
		rec.Context = trace.Context{ID: f.u32("ID"), Name: f.text("Name")}
	case trace.KindModule:
		rec.Module = trace.Module{
			Path: f.text("Path"), BuildID: f.text("BuildID"), Inode: f.u64("Inode"), Major: f.u32("Major"), Minor: f.u32("Minor"), Fixed: f.flag("Fixed"),
		}
	case trace.KindMapping, trace.KindUnmapping:
		rec.Mapping = trace.Mapping{
			Start: f.u64("Start"), End: f.u64("End"), Offset: f.u64("Offset"), Base: f.u64("Base"), Path: f.text("Path"),
		}
	case trace.KindHeapGrow:
		rec.HeapGrow = trace.HeapGrow{Address: f.u64("Address"), Size: f.u64("Size"), Internal: f.flag("Internal")}
	case trace.KindHeapInfo:
		rec.HeapInfo = trace.HeapInfo{
			Bottom: f.u64("Bottom"), Top: f.u64("Top"), Arena: f.u64("Arena"), OrdBlks: f.u64("OrdBlks"), SmBlks: f.u64("SmBlks"),
			HBlks: f.u64("HBlks"), HBlkHd: f.u64("HBlkHd"), UsmBlks: f.u64("UsmBlks"), FsmBlks: f.u64("FsmBlks"),
			UordBlks: f.u64("UordBlks"), FordBlks: f.u64("FordBlks"), KeepCost: f.u64("KeepCost"),
		}
	case trace.KindAttachment:
		rec.Attachment = trace.Attachment{Name: f.text("Name"), Path: f.text("Path")}
	case trace.KindComment:
		rec.Comment = f.text("Text")
	case trace.KindExec:
		rec.Exec.Name = f.text("Name")
	case trace.KindExit:
		rec.Exit.Process = f.flag("Whole")
	case trace.KindLost:
		rec.Lost = trace.Lost{Count: f.u64("Count"), Reason: f.text("Reason"), Since: f.i64("Since")}
	case trace.KindOpaque:
		rec.Opaque = trace.Opaque{Format: f.text("Format"), ID: f.u32("ID")}
		rec.Opaque.Data, err = d.hexBytes(p, ownFields["Data"])
	case trace.KindFunction:
		rec.Function = trace.Function{Name: f.text("Name"), Start: f.u64("Start"), End: f.u64("End"), Module: f.text("Module")}
	case trace.KindRSS:
		rec.RSS.Bytes = f.u64("Bytes")
	case trace.KindSample:
		rec.Sample = trace.Sample{Name: f.text("Name"), Weight: f.u64("Weight"), Stack: d.wholeStack(e)}
	case trace.KindEvent:
		rec.Event = trace.Event{
			Provider: f.text("Provider"), Name: f.text("Name"), ID: f.u32("ID"), Args: d.arguments(p), Stack: d.wholeStack(e),
		}
		rec.Event.Data, err = d.hexBytes(p, ownFields["Data"])
	}
	return err
}
