package jsonrecord

import (
	"fmt"

	"rtrace-bpf/internal/jsontext"
	wire "rtrace-bpf/internal/wire/jsonl"
	"rtrace-bpf/trace"
)

var (
	opNames       = namesOf(trace.ParseOp, trace.Op.String)
	stackEndNames = namesOf(trace.ParseStackEnd, trace.StackEnd.String)
)

// namesOf returns the names of an enumeration, starting with that of the value 0.
func namesOf[E ~uint8](parse func(string) (E, bool), name func(E) string) []string {
	var names []string
	for e := E(0); ; e++ {
		if _, ok := parse(name(e)); !ok {
			return names
		}
		names = append(names, name(e))
	}
}

// Append appends r as one JSON object, without a line feed, and returns the extended
// slice. It returns an error and b unchanged if r has no valid kind, or if it has frame
// names but not as many as frames.
func Append(b []byte, r *trace.Record) ([]byte, error) {
	start := len(b)
	if s := stackOf(r); s != nil && len(s.Names) != 0 && len(s.Names) != len(s.Frames) {
		if r.Kind == trace.KindCall {
			return b, fmt.Errorf("jsonl: call %d has %d frames but %d frame names", r.Call.Seq, len(s.Frames), len(s.Names))
		}
		return b, fmt.Errorf("jsonl: %v has %d frames but %d frame names", r.Kind, len(s.Frames), len(s.Names))
	}
	b = append(b, `{"kind":"`...)
	b = append(b, r.Kind.String()...)
	b = append(b, '"')
	b = jsontext.AppendInt(b, "time", r.Time)
	b = jsontext.AppendInt(b, "pid", int64(r.PID))
	b = jsontext.AppendInt(b, "tid", int64(r.TID))
	b = jsontext.AppendInt(b, "cpu", int64(r.CPU))
	switch r.Kind {
	case trace.KindHeader:
		b = appendHeader(b, &r.Header)
	case trace.KindProcess:
		b = jsontext.AppendText(b, "name", r.Process.Name)
		b = jsontext.AppendInt(b, "wall_time", r.Process.WallTime)
		b = jsontext.AppendInt(b, "depth", int64(r.Process.Depth))
		b = jsontext.AppendInt(b, "parent", int64(r.Process.Parent))
		b = jsontext.AppendInt(b, "started", r.Process.Started)
		b = jsontext.AppendText(b, "path", r.Process.Path)
	case trace.KindThread:
		b = jsontext.AppendText(b, "name", r.Thread.Name)
	case trace.KindTracerModule:
		b = jsontext.AppendUint(b, "id", uint64(r.TracerModule.ID))
		b = jsontext.AppendUint(b, "major", uint64(r.TracerModule.Major))
		b = jsontext.AppendUint(b, "minor", uint64(r.TracerModule.Minor))
		b = jsontext.AppendText(b, "name", r.TracerModule.Name)
	case trace.KindResource:
		b = jsontext.AppendUint(b, "id", uint64(r.Resource.ID))
		b = jsontext.AppendText(b, "type", r.Resource.Type)
		b = jsontext.AppendText(b, "desc", r.Resource.Desc)
		b = jsontext.AppendBool(b, "refcount", r.Resource.RefCount)
		b = jsontext.AppendBool(b, "sampled", r.Resource.Sampled)
	case trace.KindContext:
		b = jsontext.AppendUint(b, "id", uint64(r.Context.ID))
		b = jsontext.AppendText(b, "name", r.Context.Name)
	case trace.KindModule:
		b = appendModule(b, &r.Module)
	case trace.KindMapping, trace.KindUnmapping:
		b = appendMapping(b, &r.Mapping)
	case trace.KindCall:
		b = appendCall(b, &r.Call)
	case trace.KindHeapGrow:
		b = jsontext.AppendAddress(b, "address", r.HeapGrow.Address)
		b = jsontext.AppendUint(b, "size", r.HeapGrow.Size)
		b = jsontext.AppendBool(b, "internal", r.HeapGrow.Internal)
	case trace.KindHeapInfo:
		b = appendHeapInfo(b, &r.HeapInfo)
	case trace.KindAttachment:
		b = jsontext.AppendText(b, "name", r.Attachment.Name)
		b = jsontext.AppendText(b, "path", r.Attachment.Path)
	case trace.KindComment:
		b = jsontext.AppendText(b, "text", r.Comment)
	case trace.KindExec:
		b = jsontext.AppendText(b, "name", r.Exec.Name)
	case trace.KindExit:
		b = jsontext.AppendBool(b, "process", r.Exit.Process)
	case trace.KindLost:
		b = jsontext.AppendUint(b, "count", r.Lost.Count)
		b = jsontext.AppendText(b, "reason", r.Lost.Reason)
		b = jsontext.AppendInt(b, "since", r.Lost.Since)
	case trace.KindOpaque:
		b = jsontext.AppendText(b, "format", r.Opaque.Format)
		b = jsontext.AppendUint(b, "id", uint64(r.Opaque.ID))
		b = jsontext.AppendBytes(b, "data", r.Opaque.Data)
	case trace.KindFunction, trace.KindSample, trace.KindEvent:
		b = appendEvent(b, r)
	case trace.KindRSS:
		b = jsontext.AppendUint(b, "bytes", r.RSS.Bytes)
	case trace.KindWindow:
		b = appendWindow(b, &r.Window)
	case trace.KindCost:
		b = appendCost(b, &r.Cost)
	case trace.KindEnd:
	default:
		return b[:start], fmt.Errorf("jsonl: writing a record of %v", r.Kind)
	}
	return append(b, '}'), nil
}

func appendWindow(b []byte, w *trace.Window) []byte {
	b = jsontext.AppendUint(b, "weight", w.Weight)
	b = jsontext.AppendInt(b, "until", w.Until)
	b = jsontext.AppendInt(b, "stretch", w.Stretch)
	b = jsontext.AppendInt(b, "used", w.Used)
	b = jsontext.AppendInt(b, "added", w.Added)
	return jsontext.AppendUint(b, "doubt", w.Doubt)
}

func appendCost(b []byte, c *trace.Cost) []byte {
	b = jsontext.AppendInt(b, "used", c.Used)
	b = jsontext.AppendInt(b, "added", c.Added)
	b = jsontext.AppendInt(b, "tracer", c.Tracer)
	b = jsontext.AppendUint(b, "budget", c.Budget)
	b = jsontext.AppendUint(b, "worst", c.Worst)
	b = jsontext.AppendUint(b, "over", c.Over)
	b = jsontext.AppendInt(b, "covered", c.Covered)
	return jsontext.AppendInt(b, "longest", c.Longest)
}

func appendHeader(b []byte, h *trace.Header) []byte {
	b = jsontext.AppendText(b, "format", h.Format)
	b = jsontext.AppendText(b, "version", h.Version)
	b = jsontext.AppendText(b, "arch", h.Arch)
	b = jsontext.AppendBool(b, "big_endian", h.BigEndian)
	b = jsontext.AppendInt(b, "pointer_size", int64(h.PointerSize))
	b = jsontext.AppendEnum(b, "clock", uint8(h.Clock), wire.Clocks[:])
	b = jsontext.AppendInt(b, "wall_time", h.WallTime)
	b = jsontext.AppendInt(b, "clock_time", h.ClockTime)
	b = jsontext.AppendText(b, "filter", h.Filter)
	b = jsontext.AppendText(b, "origin", h.Origin)
	return jsontext.AppendBool(b, "ends", h.Ends)
}

func appendModule(b []byte, m *trace.Module) []byte {
	b = jsontext.AppendText(b, "path", m.Path)
	b = jsontext.AppendText(b, "build_id", m.BuildID)
	b = jsontext.AppendUint(b, "inode", m.Inode)
	b = jsontext.AppendUint(b, "major", uint64(m.Major))
	b = jsontext.AppendUint(b, "minor", uint64(m.Minor))
	return jsontext.AppendBool(b, "fixed", m.Fixed)
}

func appendMapping(b []byte, m *trace.Mapping) []byte {
	b = jsontext.AppendAddress(b, "start", m.Start)
	b = jsontext.AppendAddress(b, "end", m.End)
	b = jsontext.AppendAddress(b, "offset", m.Offset)
	b = jsontext.AppendAddress(b, "base", m.Base)
	return jsontext.AppendText(b, "path", m.Path)
}

func appendCall(b []byte, c *trace.Call) []byte {
	b = jsontext.AppendUint(b, "seq", c.Seq)
	b = jsontext.AppendEnum(b, "op", uint8(c.Op), opNames)
	b = jsontext.AppendText(b, "function", c.Function)
	b = jsontext.AppendUint(b, "resource", uint64(c.Resource))
	b = jsontext.AppendAddress(b, "id", c.ID)
	b = jsontext.AppendAddress(b, "old_id", c.OldID)
	b = jsontext.AppendUint(b, "size", c.Size)
	b = jsontext.AppendInt(b, "entry_time", c.EntryTime)
	b = jsontext.AppendUint(b, "context", uint64(c.Context))
	b = jsontext.AppendUint(b, "index", c.Index)
	b = jsontext.AppendText(b, "caller", c.Caller.Function)
	b = jsontext.AppendText(b, "file", c.Caller.File)
	b = jsontext.AppendUint(b, "line", c.Caller.Line)
	b = jsontext.AppendUint(b, "thread", c.Thread)
	return appendArgs(appendStack(b, &c.Stack), c.Args)
}

func appendArgs(b []byte, args []trace.Arg) []byte {
	if len(args) == 0 {
		return b
	}
	b = append(jsontext.AppendKey(b, "args"), '[')
	for i, a := range args {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = jsontext.AppendString(b, a.Name)
		b = append(b, `,"value":`...)
		b = jsontext.AppendString(b, a.Value)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendStack(b []byte, s *trace.Stack) []byte {
	b = jsontext.AppendEnum(b, "stack_end", uint8(s.End), stackEndNames)
	b = jsontext.AppendText(b, "stack_reason", s.Reason)
	b = jsontext.AppendBool(b, "frame_pointer", s.FramePointer)
	if len(s.Frames) > 0 {
		b = append(jsontext.AppendKey(b, "stack"), '[')
		for i, f := range s.Frames {
			if i > 0 {
				b = append(b, ',')
			}
			b = jsontext.AppendHex(b, f)
		}
		b = append(b, ']')
	}
	if len(s.Names) > 0 {
		b = append(jsontext.AppendKey(b, "names"), '[')
		for i, n := range s.Names {
			if i > 0 {
				b = append(b, ',')
			}
			b = jsontext.AppendString(b, n)
		}
		b = append(b, ']')
	}
	return b
}

func appendHeapInfo(b []byte, h *trace.HeapInfo) []byte {
	b = jsontext.AppendAddress(b, "bottom", h.Bottom)
	b = jsontext.AppendAddress(b, "top", h.Top)
	b = jsontext.AppendUint(b, "arena", h.Arena)
	b = jsontext.AppendUint(b, "ordblks", h.OrdBlks)
	b = jsontext.AppendUint(b, "smblks", h.SmBlks)
	b = jsontext.AppendUint(b, "hblks", h.HBlks)
	b = jsontext.AppendUint(b, "hblkhd", h.HBlkHd)
	b = jsontext.AppendUint(b, "usmblks", h.UsmBlks)
	b = jsontext.AppendUint(b, "fsmblks", h.FsmBlks)
	b = jsontext.AppendUint(b, "uordblks", h.UordBlks)
	b = jsontext.AppendUint(b, "fordblks", h.FordBlks)
	return jsontext.AppendUint(b, "keepcost", h.KeepCost)
}
