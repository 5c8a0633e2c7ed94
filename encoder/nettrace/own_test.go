package nettrace_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	decoder "rtrace-bpf/decoder/nettrace"
	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// ownReader turns the events of rtrace's provider back into records, as
// internal/wire/nettrace describes.
type ownReader struct {
	t       testing.TB
	pid     int32
	seq     uint64
	stacks  map[uint32]trace.Stack // by id: what events add to them
	lost    uint64                 // missing events
	raw     []string               // events of Universal.System: their payloads
	system  []string               // the same as text
	records []*trace.Record
}

// values holds the fields of an event by name, as numbers or texts.
type values map[string]any

func (v values) number(name string) uint64 { n, _ := v[name].(uint64); return n }
func (v values) text(name string) string   { s, _ := v[name].(string); return s }

// read reads a whole stream.
func read(t testing.TB, data []byte) *ownReader {
	t.Helper()
	s, err := decoder.NewScanner(bytes.NewReader(data), decoder.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	o := &ownReader{t: t, pid: int32(s.Info().ProcessID), stacks: map[uint32]trace.Stack{}}
	object := func() uint64 {
		points := s.Stats().Objects
		return points[wire.ObjectSequence] + points["SequencePoint"]
	}
	for behind := object(); ; {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			return o
		}
		if err != nil {
			t.Fatal(err)
		}
		if now := object(); now != behind {
			clear(o.stacks)
			behind = now
		}
		if e.Lost != 0 {
			o.lost += e.Lost
			continue
		}
		v := o.values(e)
		if e.Meta.Provider != wire.ProviderOwn {
			if e.Meta.Provider == wire.ProviderSystem {
				o.raw = append(o.raw, fmt.Sprintf("%d %x", e.Meta.EventID, e.Payload))
				o.system = append(o.system, systemText(e.Meta.Name, v))
			}
			continue
		}
		if e.Meta.Name == wire.OwnStackName && e.Meta.EventID == wire.OwnStackID {
			o.stack(e, v)
			continue
		}
		r := &trace.Record{Time: int64(e.Time), PID: o.pid, TID: int32(e.Thread.ID)}
		if s.Info().Major == 6 {
			r.PID = int32(e.Thread.Process)
		}
		if e.Processor != wire.OwnNoProcessor {
			r.CPU = int32(e.Processor) + 1
		}
		if _, ok := v[wire.OwnTime]; ok {
			r.Time = int64(v.number(wire.OwnTime))
		}
		if _, ok := v[wire.OwnProcess]; ok {
			r.PID = int32(v.number(wire.OwnProcess))
		}
		if e.Meta.Keywords&wire.OwnCall != 0 {
			o.call(r, e, v)
		} else {
			o.other(r, e, v)
		}
		o.records = append(o.records, r)
	}
}

// values parses a payload.
func (o *ownReader) values(e *decoder.Event) values {
	v := values{}
	b := e.Payload
	for _, f := range e.Meta.Fields {
		switch f.Type {
		case wire.TypeString:
			var units []uint16
			for len(b) >= 2 && (b[0] != 0 || b[1] != 0) {
				units = append(units, binary.LittleEndian.Uint16(b))
				b = b[2:]
			}
			b = b[2:]
			v[f.Name] = unescape(units)
		case wire.TypeByte:
			v[f.Name], b = uint64(b[0]), b[1:]
		case wire.TypeInt32, wire.TypeUInt32, wire.TypeBoolean32:
			v[f.Name], b = uint64(int64(int32(binary.LittleEndian.Uint32(b)))), b[4:]
		case wire.TypeInt64, wire.TypeUInt64:
			v[f.Name], b = binary.LittleEndian.Uint64(b), b[8:]
		case wire.TypeVarUInt:
			n, size := binary.Uvarint(b)
			v[f.Name], b = n, b[size:]
		case wire.TypeArray:
			n := int(binary.LittleEndian.Uint16(b))
			v[f.Name], b = string(b[2:2+n]), b[2+n:]
		default:
			o.t.Fatalf("field %s of %s has type %v", f.Name, e.Meta.Name, f.Type)
		}
	}
	if len(b) != 0 && len(e.Meta.Fields) > 0 {
		o.t.Errorf("%d bytes behind the fields of %s", len(b), e.Meta.Name)
	}
	return v
}

// systemText returns an event of Universal.System as text.
func systemText(name string, v values) string {
	switch name {
	case "ExistingProcess":
		return fmt.Sprintf("process %d %s", v["NamespaceId"], v["Name"])
	case "ProcessExit":
		return "exit"
	case "ProcessMapping":
		return fmt.Sprintf("mapping %d %x-%x %x %s %d", v["Id"], v["StartAddress"], v["EndAddress"], v["FileOffset"], v["FileName"], v["MetadataId"])
	case "ProcessMappingMetadata":
		return fmt.Sprintf("metadata %d %s", v["Id"], v["SymbolMetadata"])
	case "ProcessSymbol":
		return fmt.Sprintf("symbol %d %x-%x %s", v["MappingId"], v["StartAddress"], v["EndAddress"], v["Name"])
	}
	return name
}

// unescape restores bytes that are not text.
func unescape(units []uint16) string {
	var b []byte
	for i := 0; i < len(units); i++ {
		u := rune(units[i])
		switch {
		case utf16.IsSurrogate(u) && u < 0xdc00:
			b = utf8.AppendRune(b, utf16.DecodeRune(u, rune(units[i+1])))
			i++
		case utf16.IsSurrogate(u):
			b = append(b, byte(u-wire.OwnEscape))
		default:
			b = utf8.AppendRune(b, u)
		}
	}
	return string(b)
}

// unquote restores a text in a list of texts.
var unquote = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace

func (o *ownReader) stack(e *decoder.Event, v values) {
	st := o.stacks[e.Head.Stack]
	st.End, st.FramePointer, st.Reason = trace.StackEnd(v.number(wire.OwnEnd)), v.number(wire.OwnFramePointer) != 0, v.text(wire.OwnReason)
	for line := range strings.Lines(v.text(wire.OwnNames)) {
		st.Names = append(st.Names, unquote(strings.TrimSuffix(line, "\n")))
	}
	for f := range strings.FieldsSeq(v.text(wire.OwnFrames)) {
		n, err := strconv.ParseUint(f, 16, 64)
		if err != nil {
			o.t.Error(err)
		}
		st.Frames = append(st.Frames, n)
	}
	o.stacks[e.Head.Stack] = st
}

func (o *ownReader) call(r *trace.Record, e *decoder.Event, v values) {
	r.Kind = trace.KindCall
	c := &r.Call
	switch e.Meta.Keywords & wire.OwnCall {
	case wire.OwnAlloc:
		c.Op = trace.OpAlloc
	case wire.OwnFree:
		c.Op = trace.OpFree
	case wire.OwnMove:
		c.Op = trace.OpMove
	}
	c.Resource = uint32(e.Meta.Keywords >> wire.OwnResourceShift)
	c.Function = v.text(wire.OwnFunction)
	if e.Meta.Keywords&wire.OwnNamed != 0 {
		c.Function = e.Meta.Name
	}
	o.seq++
	if _, ok := v[wire.OwnSequence]; ok {
		o.seq = v.number(wire.OwnSequence)
	}
	c.Seq = o.seq
	c.ID, c.OldID, c.Size = v.number(wire.OwnAddress), v.number(wire.OwnOldAddress), v.number(wire.OwnSize)
	c.EntryTime, c.Context = int64(v.number(wire.OwnEntryTime)), uint32(v.number(wire.OwnContext))
	c.Index, c.Thread = v.number(wire.OwnIndex), v.number(wire.OwnThread)
	c.Caller = trace.Caller{Function: v.text(wire.OwnCaller), File: v.text(wire.OwnFile), Line: v.number(wire.OwnLine)}
	c.Args = arguments(v.text(wire.OwnArguments))
	c.Stack = o.whole(e)
}

// arguments parses the field Arguments.
func arguments(text string) (args []trace.Arg) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		args = append(args, trace.Arg{Name: unquote(name), Value: unquote(value)})
	}
	return args
}

// whole returns the stack of an event.
func (o *ownReader) whole(e *decoder.Event) trace.Stack {
	st, known := o.stacks[e.Head.Stack]
	if len(st.Frames) == 0 {
		st.Frames = append([]uint64(nil), e.Stack...)
	}
	if !known && len(st.Frames) > 0 {
		st.End = trace.StackComplete
	}
	return st
}

func (o *ownReader) other(r *trace.Record, e *decoder.Event, v values) {
	for _, row := range wire.OwnRecords {
		if row.Name == e.Meta.Name {
			r.Kind, _ = trace.ParseKind(row.Kind)
		}
	}
	num32 := func(name string) uint32 { return uint32(v.number(name)) }
	switch r.Kind {
	case trace.KindHeader:
		r.Header = trace.Header{
			Format: v.text("Format"), Version: v.text("Version"), Arch: v.text("Arch"), BigEndian: v.number("BigEndian") != 0,
			PointerSize: int(v.number("PointerSize")), Clock: trace.Clock(v.number("Clock")), WallTime: int64(v.number("WallTime")),
			ClockTime: int64(v.number("ClockTime")), Filter: v.text("Filter"), Origin: v.text("Origin"), Ends: v.number("Ends") != 0,
		}
	case trace.KindProcess:
		r.Process = trace.Process{
			Name: v.text("Name"), WallTime: int64(v.number("WallTime")), Depth: int(v.number("Depth")),
			Parent: int32(v.number("Parent")), Started: int64(v.number("Started")), Path: v.text("Path"),
		}
	case trace.KindThread:
		r.Thread.Name = v.text("Name")
	case trace.KindTracerModule:
		r.TracerModule = trace.TracerModule{ID: num32("ID"), Major: uint16(num32("Major")), Minor: uint16(num32("Minor")), Name: v.text("Name")}
	case trace.KindResource:
		r.Resource = trace.Resource{ID: num32("ID"), Type: v.text("Type"), Desc: v.text("Desc"), RefCount: v.number("RefCount") != 0, Sampled: v.number("Sampled") != 0}
	case trace.KindContext:
		r.Context = trace.Context{ID: num32("ID"), Name: v.text("Name")}
	case trace.KindModule:
		r.Module = trace.Module{
			Path: v.text("Path"), BuildID: v.text("BuildID"), Inode: v.number("Inode"), Major: num32("Major"), Minor: num32("Minor"), Fixed: v.number("Fixed") != 0,
		}
	case trace.KindMapping, trace.KindUnmapping:
		r.Mapping = trace.Mapping{Start: v.number("Start"), End: v.number("End"), Offset: v.number("Offset"), Base: v.number("Base"), Path: v.text("Path")}
	case trace.KindHeapGrow:
		r.HeapGrow = trace.HeapGrow{Address: v.number("Address"), Size: v.number("Size"), Internal: v.number("Internal") != 0}
	case trace.KindHeapInfo:
		n := v.number
		r.HeapInfo = trace.HeapInfo{
			Bottom: n("Bottom"), Top: n("Top"), Arena: n("Arena"), OrdBlks: n("OrdBlks"), SmBlks: n("SmBlks"), HBlks: n("HBlks"), HBlkHd: n("HBlkHd"),
			UsmBlks: n("UsmBlks"), FsmBlks: n("FsmBlks"), UordBlks: n("UordBlks"), FordBlks: n("FordBlks"), KeepCost: n("KeepCost"),
		}
	case trace.KindAttachment:
		r.Attachment = trace.Attachment{Name: v.text("Name"), Path: v.text("Path")}
	case trace.KindComment:
		r.Comment = v.text("Text")
	case trace.KindExec:
		r.Exec.Name = v.text("Name")
	case trace.KindExit:
		r.Exit.Process = v.number("Whole") != 0
	case trace.KindLost:
		r.Lost = trace.Lost{Count: v.number("Count"), Reason: v.text("Reason"), Since: int64(v.number("Since"))}
	case trace.KindOpaque:
		r.Opaque = trace.Opaque{Format: v.text("Format"), ID: num32("ID"), Data: o.bytes(v)}
	case trace.KindFunction:
		r.Function = trace.Function{Name: v.text("Name"), Start: v.number("Start"), End: v.number("End"), Module: v.text("Module")}
	case trace.KindRSS:
		r.RSS.Bytes = v.number("Bytes")
	case trace.KindWindow:
		r.Window = trace.Window{
			Weight: v.number("Weight"), Until: int64(v.number("Until")), Stretch: int64(v.number("Stretch")),
			Used: int64(v.number("Used")), Added: int64(v.number("Added")), Doubt: v.number("Doubt"),
		}
	case trace.KindCost:
		r.Cost = trace.Cost{
			Used: int64(v.number("Used")), Added: int64(v.number("Added")), Tracer: int64(v.number("Tracer")), Budget: v.number("Budget"),
			Worst: v.number("Worst"), Over: v.number("Over"), Covered: int64(v.number("Covered")), Longest: int64(v.number("Longest")),
		}
	case trace.KindSample:
		r.Sample = trace.Sample{Name: v.text("Name"), Weight: v.number("Weight"), Stack: o.whole(e)}
	case trace.KindEvent:
		r.Event = trace.Event{
			Provider: v.text("Provider"), Name: v.text("Name"), ID: num32("ID"), Args: arguments(v.text("Arguments")), Data: o.bytes(v), Stack: o.whole(e),
		}
	}
}

// bytes returns the field Data.
func (o *ownReader) bytes(v values) []byte {
	data, err := hex.DecodeString(v.text("Data"))
	if err != nil {
		o.t.Error(err)
	}
	return data
}
