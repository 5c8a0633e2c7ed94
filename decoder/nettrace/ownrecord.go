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

// record reads the fields of its kind.
func (r ownReadings) record(rec *trace.Record, e *Event) (err error) {
	switch r.p.kind {
	case trace.KindHeader:
		rec.Header = trace.Header{
			Format: r.text("Format"), Version: r.text("Version"), Arch: r.text("Arch"), BigEndian: r.flag("BigEndian"),
			PointerSize: int(int32(r.u32("PointerSize"))), Clock: trace.Clock(r.u32("Clock")), WallTime: r.i64("WallTime"),
			ClockTime: r.i64("ClockTime"), Filter: r.text("Filter"), Origin: r.text("Origin"), Ends: r.flag("Ends"),
		}
	case trace.KindProcess:
		rec.Process = trace.Process{
			Name: r.text("Name"), WallTime: r.i64("WallTime"), Depth: int(int32(r.u32("Depth"))),
			Parent: int32(r.u32("Parent")), Started: r.i64("Started"), Path: r.text("Path"),
		}
	case trace.KindThread:
		rec.Thread.Name = r.text("Name")
	case trace.KindTracerModule:
		rec.TracerModule = trace.TracerModule{
			ID: r.u32("ID"), Major: uint16(r.u32("Major")), Minor: uint16(r.u32("Minor")), Name: r.text("Name"),
		}
	case trace.KindResource:
		rec.Resource = trace.Resource{
			ID: r.u32("ID"), Type: r.text("Type"), Desc: r.text("Desc"), RefCount: r.flag("RefCount"), Sampled: r.flag("Sampled"),
		}
	case trace.KindContext:
		rec.Context = trace.Context{ID: r.u32("ID"), Name: r.text("Name")}
	case trace.KindModule:
		rec.Module = trace.Module{
			Path: r.text("Path"), BuildID: r.text("BuildID"), Inode: r.u64("Inode"), Major: r.u32("Major"), Minor: r.u32("Minor"), Fixed: r.flag("Fixed"),
		}
	case trace.KindMapping, trace.KindUnmapping:
		rec.Mapping = trace.Mapping{
			Start: r.u64("Start"), End: r.u64("End"), Offset: r.u64("Offset"), Base: r.u64("Base"), Path: r.text("Path"),
		}
	case trace.KindHeapGrow:
		rec.HeapGrow = trace.HeapGrow{Address: r.u64("Address"), Size: r.u64("Size"), Internal: r.flag("Internal")}
	case trace.KindHeapInfo:
		rec.HeapInfo = trace.HeapInfo{
			Bottom: r.u64("Bottom"), Top: r.u64("Top"), Arena: r.u64("Arena"), OrdBlks: r.u64("OrdBlks"), SmBlks: r.u64("SmBlks"),
			HBlks: r.u64("HBlks"), HBlkHd: r.u64("HBlkHd"), UsmBlks: r.u64("UsmBlks"), FsmBlks: r.u64("FsmBlks"),
			UordBlks: r.u64("UordBlks"), FordBlks: r.u64("FordBlks"), KeepCost: r.u64("KeepCost"),
		}
	case trace.KindAttachment:
		rec.Attachment = trace.Attachment{Name: r.text("Name"), Path: r.text("Path")}
	case trace.KindComment:
		rec.Comment = r.text("Text")
	case trace.KindExec:
		rec.Exec.Name = r.text("Name")
	case trace.KindExit:
		rec.Exit.Process = r.flag("Whole")
	case trace.KindLost:
		rec.Lost = trace.Lost{Count: r.u64("Count"), Reason: r.text("Reason"), Since: r.i64("Since")}
	case trace.KindOpaque:
		rec.Opaque = trace.Opaque{Format: r.text("Format"), ID: r.u32("ID")}
		rec.Opaque.Data, err = r.d.hexBytes(r.p, ownFields["Data"])
	case trace.KindFunction:
		rec.Function = trace.Function{Name: r.text("Name"), Start: r.u64("Start"), End: r.u64("End"), Module: r.text("Module")}
	case trace.KindRSS:
		rec.RSS.Bytes = r.u64("Bytes")
	case trace.KindWindow:
		rec.Window = trace.Window{
			Weight: r.u64("Weight"), Until: r.i64("Until"), Stretch: r.i64("Stretch"),
			Used: r.i64("Used"), Added: r.i64("Added"), Doubt: r.u64("Doubt"),
		}
	case trace.KindCost:
		rec.Cost = trace.Cost{
			Used: r.i64("Used"), Added: r.i64("Added"), Tracer: r.i64("Tracer"), Budget: r.u64("Budget"),
			Worst: r.u64("Worst"), Over: r.u64("Over"), Covered: r.i64("Covered"), Longest: r.i64("Longest"),
		}
	case trace.KindSample:
		rec.Sample = trace.Sample{Name: r.text("Name"), Weight: r.u64("Weight"), Stack: r.d.wholeStack(e)}
	case trace.KindEvent:
		rec.Event = trace.Event{
			Provider: r.text("Provider"), Name: r.text("Name"), ID: r.u32("ID"), Args: r.d.arguments(r.p), Stack: r.d.wholeStack(e),
		}
		rec.Event.Data, err = r.d.hexBytes(r.p, ownFields["Data"])
	}
	return err
}
