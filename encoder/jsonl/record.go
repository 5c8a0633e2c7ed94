package jsonl

import (
	"fmt"

	wire "rtrace-bpf/internal/wire/jsonl"
	"rtrace-bpf/trace"
)

var (
	opNames       = namesOf(trace.ParseOp, trace.Op.String)
	stackEndNames = namesOf(trace.ParseStackEnd, trace.StackEnd.String)
)

// namesOf lists the names of an enumeration, from the value 0 on.
func namesOf[E ~uint8](parse func(string) (E, bool), name func(E) string) []string {
	var names []string
	for e := E(0); ; e++ {
		if _, ok := parse(name(e)); !ok {
			return names
		}
		names = append(names, name(e))
	}
}

// AppendRecord appends r as one JSON object, without a line end, and returns
// the extended slice. It fails if r has no valid kind or as many frame names
// as it has not frames; b is unchanged then.
func AppendRecord(b []byte, r *trace.Record) ([]byte, error) {
	start := len(b)
	if r.Kind == trace.KindCall {
		s := &r.Call.Stack
		if len(s.Names) != 0 && len(s.Names) != len(s.Frames) {
			return b, fmt.Errorf("jsonl: call %d has %d frames but %d frame names", r.Call.Seq, len(s.Frames), len(s.Names))
		}
	}
	b = append(b, `{"kind":"`...)
	b = append(b, r.Kind.String()...)
	b = append(b, '"')
	b = appendInt(b, "time", r.Time)
	b = appendInt(b, "pid", int64(r.PID))
	b = appendInt(b, "tid", int64(r.TID))
	b = appendInt(b, "cpu", int64(r.CPU))
	switch r.Kind {
	case trace.KindHeader:
		b = appendHeader(b, &r.Header)
	case trace.KindProcess:
		b = appendText(b, "name", r.Process.Name)
		b = appendInt(b, "wall_time", r.Process.WallTime)
		b = appendInt(b, "depth", int64(r.Process.Depth))
	case trace.KindThread:
		b = appendText(b, "name", r.Thread.Name)
	case trace.KindTracerModule:
		b = appendUint(b, "id", uint64(r.TracerModule.ID))
		b = appendUint(b, "major", uint64(r.TracerModule.Major))
		b = appendUint(b, "minor", uint64(r.TracerModule.Minor))
		b = appendText(b, "name", r.TracerModule.Name)
	case trace.KindResource:
		b = appendUint(b, "id", uint64(r.Resource.ID))
		b = appendText(b, "type", r.Resource.Type)
		b = appendText(b, "desc", r.Resource.Desc)
		b = appendBool(b, "refcount", r.Resource.RefCount)
	case trace.KindContext:
		b = appendUint(b, "id", uint64(r.Context.ID))
		b = appendText(b, "name", r.Context.Name)
	case trace.KindModule:
		b = appendModule(b, &r.Module)
	case trace.KindMapping, trace.KindUnmapping:
		b = appendMapping(b, &r.Mapping)
	case trace.KindCall:
		b = appendCall(b, &r.Call)
	case trace.KindHeapInfo:
		b = appendHeapInfo(b, &r.HeapInfo)
	case trace.KindAttachment:
		b = appendText(b, "name", r.Attachment.Name)
		b = appendText(b, "path", r.Attachment.Path)
	case trace.KindComment:
		b = appendText(b, "text", r.Comment)
	case trace.KindExec:
		b = appendText(b, "name", r.Exec.Name)
	case trace.KindExit:
		b = appendBool(b, "process", r.Exit.Process)
	case trace.KindLost:
		b = appendUint(b, "count", r.Lost.Count)
		b = appendText(b, "reason", r.Lost.Reason)
		b = appendInt(b, "since", r.Lost.Since)
	case trace.KindOpaque:
		b = appendText(b, "format", r.Opaque.Format)
		b = appendUint(b, "id", uint64(r.Opaque.ID))
		b = appendBytes(b, "data", r.Opaque.Data)
	case trace.KindEnd:
	default:
		return b[:start], fmt.Errorf("jsonl: writing a record of %v", r.Kind)
	}
	return append(b, '}'), nil
}

func appendHeader(b []byte, h *trace.Header) []byte {
	b = appendText(b, "format", h.Format)
	b = appendText(b, "version", h.Version)
	b = appendText(b, "arch", h.Arch)
	b = appendBool(b, "big_endian", h.BigEndian)
	b = appendInt(b, "pointer_size", int64(h.PointerSize))
	b = appendEnum(b, "clock", uint8(h.Clock), wire.Clocks[:])
	b = appendInt(b, "wall_time", h.WallTime)
	b = appendInt(b, "clock_time", h.ClockTime)
	b = appendText(b, "filter", h.Filter)
	return appendText(b, "origin", h.Origin)
}

func appendModule(b []byte, m *trace.Module) []byte {
	b = appendText(b, "path", m.Path)
	b = appendText(b, "build_id", m.BuildID)
	b = appendUint(b, "inode", m.Inode)
	b = appendUint(b, "major", uint64(m.Major))
	b = appendUint(b, "minor", uint64(m.Minor))
	return appendBool(b, "fixed", m.Fixed)
}

func appendMapping(b []byte, m *trace.Mapping) []byte {
	b = appendAddress(b, "start", m.Start)
	b = appendAddress(b, "end", m.End)
	b = appendAddress(b, "offset", m.Offset)
	b = appendAddress(b, "base", m.Base)
	return appendText(b, "path", m.Path)
}

func appendCall(b []byte, c *trace.Call) []byte {
	b = appendUint(b, "seq", c.Seq)
	b = appendEnum(b, "op", uint8(c.Op), opNames)
	b = appendText(b, "function", c.Function)
	b = appendUint(b, "resource", uint64(c.Resource))
	b = appendAddress(b, "id", c.ID)
	b = appendAddress(b, "old_id", c.OldID)
	b = appendUint(b, "size", c.Size)
	b = appendInt(b, "entry_time", c.EntryTime)
	b = appendUint(b, "context", uint64(c.Context))
	b = appendStack(b, &c.Stack)
	if len(c.Args) == 0 {
		return b
	}
	b = append(appendKey(b, "args"), '[')
	for i, a := range c.Args {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = appendString(b, a.Name)
		b = append(b, `,"value":`...)
		b = appendString(b, a.Value)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendStack(b []byte, s *trace.Stack) []byte {
	b = appendEnum(b, "stack_end", uint8(s.End), stackEndNames)
	b = appendText(b, "stack_reason", s.Reason)
	b = appendBool(b, "frame_pointer", s.FramePointer)
	if len(s.Frames) > 0 {
		b = append(appendKey(b, "stack"), '[')
		for i, f := range s.Frames {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendHex(b, f)
		}
		b = append(b, ']')
	}
	if len(s.Names) > 0 {
		b = append(appendKey(b, "names"), '[')
		for i, n := range s.Names {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, n)
		}
		b = append(b, ']')
	}
	return b
}

func appendHeapInfo(b []byte, h *trace.HeapInfo) []byte {
	b = appendAddress(b, "bottom", h.Bottom)
	b = appendAddress(b, "top", h.Top)
	b = appendUint(b, "arena", h.Arena)
	b = appendUint(b, "ordblks", h.OrdBlks)
	b = appendUint(b, "smblks", h.SmBlks)
	b = appendUint(b, "hblks", h.HBlks)
	b = appendUint(b, "hblkhd", h.HBlkHd)
	b = appendUint(b, "usmblks", h.UsmBlks)
	b = appendUint(b, "fsmblks", h.FsmBlks)
	b = appendUint(b, "uordblks", h.UordBlks)
	b = appendUint(b, "fordblks", h.FordBlks)
	return appendUint(b, "keepcost", h.KeepCost)
}
