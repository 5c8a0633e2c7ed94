package nettrace

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// own is the state of a stream that rtrace's encoder wrote. Its records are in the
// events of rtrace's provider; all other events repeat them for other readers.
type own struct {
	active bool                  // only an event may mark the end of the stream
	points uint64                // Scanner.points when stacks was made
	stacks map[uint32]*fullStack // by id: what events add to them
	values [maxOwnFields]value   // of the fields of an event
}

// fullStack is a stack with what an event adds to it.
type fullStack struct{ trace.Stack }

// value is the contents of a field: a number, or a text in UTF-16.
type value struct {
	number uint64
	text   []byte
}

// ownPlan is how the events of one kind are read.
type ownPlan struct {
	kind     trace.Kind
	op       trace.Op
	resource uint32
	function string
	fields   []ownField
	has      [maxOwnFields]bool
}

type ownField struct {
	index uint8 // in own.values
	kind  wire.Type
}

// Numbers of the fields that are read by number.
const (
	fieldTime = iota
	fieldProcess
	fieldSequence
	fieldAddress
	fieldOldAddress
	fieldSize
	fieldEntryTime
	fieldContext
	fieldIndex
	fieldThread
	fieldCaller
	fieldFile
	fieldLine
	fieldArguments
	fieldFunction
	fieldEnd
	fieldFramePointer
	fieldReason
	fieldNames
	fieldFrames
	firstField // of the fields that only wire.OwnRecords has
)

// maxOwnFields is more than there are names of fields.
const maxOwnFields = 128

// ownFields holds the numbers of fields by their names.
var ownFields = func() map[string]uint8 {
	fields := map[string]uint8{
		wire.OwnTime: fieldTime, wire.OwnProcess: fieldProcess, wire.OwnSequence: fieldSequence, wire.OwnAddress: fieldAddress,
		wire.OwnOldAddress: fieldOldAddress, wire.OwnSize: fieldSize, wire.OwnEntryTime: fieldEntryTime, wire.OwnContext: fieldContext,
		wire.OwnIndex: fieldIndex, wire.OwnThread: fieldThread, wire.OwnCaller: fieldCaller, wire.OwnFile: fieldFile,
		wire.OwnLine: fieldLine, wire.OwnArguments: fieldArguments, wire.OwnFunction: fieldFunction, wire.OwnEnd: fieldEnd,
		wire.OwnFramePointer: fieldFramePointer, wire.OwnReason: fieldReason, wire.OwnNames: fieldNames, wire.OwnFrames: fieldFrames,
	}
	next := uint8(firstField)
	for _, r := range wire.OwnRecords {
		for _, f := range r.Fields {
			if _, known := fields[f.Name]; !known {
				fields[f.Name] = next
				next++
			}
		}
	}
	return fields
}()

// ownHandler returns the handler for an event of rtrace's provider, or nil for an event
// that rtrace's encoder does not write.
func ownHandler(m *wire.Metadata) handler {
	switch {
	case m.EventID == wire.OwnStackID && m.Name == wire.OwnStackName:
		return (*Reader).ownStack
	case m.Keywords&wire.OwnCall != 0:
		return (*Reader).ownCall
	case ownKind(m) != trace.KindNone:
		return (*Reader).ownRecord
	}
	return nil
}

// ownKind returns the kind of record of an event that is not a call.
func ownKind(m *wire.Metadata) trace.Kind {
	if n := m.EventID - wire.OwnRecordID; uint64(n) < uint64(len(wire.OwnRecords)) && wire.OwnRecords[n].Name == m.Name {
		kind, _ := trace.ParseKind(wire.OwnRecords[n].Kind)
		return kind
	}
	return trace.KindNone
}

// newOwnPlan returns how events of m are read, or nil if they have unknown fields.
func newOwnPlan(m *wire.Metadata) *ownPlan {
	p := &ownPlan{kind: ownKind(m), resource: uint32(m.Keywords >> wire.OwnResourceShift)}
	switch m.Keywords & wire.OwnCall {
	case wire.OwnAlloc:
		p.op = trace.OpAlloc
	case wire.OwnFree:
		p.op = trace.OpFree
	case wire.OwnMove:
		p.op = trace.OpMove
	}
	if m.Keywords&wire.OwnNamed != 0 {
		p.function = m.Name
	}
	for _, f := range m.Fields {
		index, known := ownFields[f.Name]
		if !known {
			return nil
		}
		p.fields = append(p.fields, ownField{index, f.Type})
		p.has[index] = true
	}
	return p
}

// beginOwn reports whether the first event is one of rtrace's encoder. If so, the
// stream's beginning is in its events.
func (d *Reader) beginOwn(e *Event) bool {
	d.own.active = ownHandler(e.Meta) != nil
	return d.own.active
}

// read parses the payload of an event.
func (o *own) read(p *ownPlan, payload []byte) error {
	c := cursor{b: payload}
	for _, f := range p.fields {
		v := &o.values[f.index]
		switch f.kind {
		case wire.TypeUInt64, wire.TypeInt64:
			v.number = c.u64()
		case wire.TypeUInt32, wire.TypeBoolean32:
			v.number = uint64(c.u32())
		case wire.TypeInt32:
			v.number = uint64(int64(int32(c.u32())))
		case wire.TypeByte:
			v.number = uint64(c.u8())
		case wire.TypeString:
			v.text = c.raw16()
		default:
			c.fail(malformed("field of type %s", f.kind))
		}
	}
	return c.err
}

// number returns the value of a field, or 0 if the event does not have it.
func (o *own) number(p *ownPlan, index uint8) uint64 {
	if p.has[index] {
		return o.values[index].number
	}
	return 0
}

// ownString returns the text in a field, or "" if the event does not have it.
func (d *Reader) ownString(p *ownPlan, index uint8) string {
	if !p.has[index] || len(d.own.values[index].text) == 0 {
		return ""
	}
	d.format.text = appendUnescaped(d.format.text[:0], d.own.values[index].text)
	if len(d.format.text) > 1024 {
		return string(d.format.text)
	}
	return d.format.texts.get(d.format.text)
}

// appendUnescaped appends UTF-16 as UTF-8, and the bytes for which escaped units stand.
func appendUnescaped(dst, src []byte) []byte {
	for i := 0; i+1 < len(src); i += 2 {
		u := rune(src[i]) | rune(src[i+1])<<8
		switch {
		case u < utf8.RuneSelf:
			dst = append(dst, byte(u))
		case u >= wire.OwnEscape && u < wire.OwnEscape+256:
			dst = append(dst, byte(u-wire.OwnEscape))
		case utf16.IsSurrogate(u) && i+3 < len(src):
			dst = utf8.AppendRune(dst, utf16.DecodeRune(u, rune(src[i+2])|rune(src[i+3])<<8))
			i += 2
		default:
			dst = utf8.AppendRune(dst, u)
		}
	}
	return dst
}

// startOwn sets the fields that all records share.
func (d *Reader) startOwn(rec *trace.Record, e *Event, p *ownPlan, kind trace.Kind) {
	o := &d.own
	rec.Kind = kind
	rec.Time = d.s.info.Nanoseconds(e.Time)
	rec.PID, rec.TID, rec.CPU = int32(e.Thread.Process), int32(e.Thread.ID), 0
	if e.Processor < math.MaxInt32 {
		rec.CPU = int32(e.Processor) + 1
	}
	if p.has[fieldTime] {
		rec.Time = int64(o.values[fieldTime].number)
	}
	if p.has[fieldProcess] {
		rec.PID = int32(o.values[fieldProcess].number)
	}
}

// ownCall reads a call.
func (d *Reader) ownCall(e *Event, rec *trace.Record, plan *plan) error {
	o, p := &d.own, plan.own
	if err := o.read(p, e.Payload); err != nil {
		return err
	}
	d.startOwn(rec, e, p, trace.KindCall)
	d.seq++
	if p.has[fieldSequence] {
		d.seq = o.values[fieldSequence].number
	}
	d.stats.Calls++
	c := &rec.Call
	*c = trace.Call{Seq: d.seq, Op: p.op, Function: p.function, Resource: p.resource}
	for _, f := range p.fields {
		v := o.values[f.index].number
		switch f.index {
		case fieldAddress:
			c.ID = v
		case fieldOldAddress:
			c.OldID = v
		case fieldSize:
			c.Size = v
		case fieldEntryTime:
			c.EntryTime = int64(v)
		case fieldContext:
			c.Context = uint32(v)
		case fieldIndex:
			c.Index = v
		case fieldThread:
			c.Thread = v
		case fieldLine:
			c.Caller.Line = v
		case fieldFunction:
			c.Function = d.ownString(p, fieldFunction)
		case fieldCaller:
			c.Caller.Function = d.ownString(p, fieldCaller)
		case fieldFile:
			c.Caller.File = d.ownString(p, fieldFile)
		case fieldArguments:
			c.Args = d.arguments(p)
		}
	}
	c.Stack = d.wholeStack(e)
	return nil
}

// ownRecord reads a record that is not a call.
func (d *Reader) ownRecord(e *Event, rec *trace.Record, plan *plan) error {
	if err := d.own.read(plan.own, e.Payload); err != nil {
		return err
	}
	d.startOwn(rec, e, plan.own, plan.own.kind)
	return ownReadings{d, plan.own}.record(rec, e)
}

// wholeStack returns the stack of an event, with what other events add to it.
func (d *Reader) wholeStack(e *Event) trace.Stack {
	if full := d.own.stacks[e.Head.Stack]; full != nil && d.own.points == d.s.points {
		s := full.Stack
		if len(s.Frames) == 0 {
			s.Frames = e.Stack
		}
		return s
	}
	if len(e.Stack) == 0 {
		return trace.Stack{}
	}
	return trace.Stack{Frames: e.Stack, End: trace.StackComplete}
}

// ownStack remembers what an event adds to its stack.
func (d *Reader) ownStack(e *Event, _ *trace.Record, plan *plan) error {
	o, p := &d.own, plan.own
	if err := o.read(p, e.Payload); err != nil {
		return err
	}
	if o.stacks == nil || o.points != d.s.points {
		o.stacks, o.points = make(map[uint32]*fullStack), d.s.points
	}
	t := o.stacks[e.Head.Stack]
	if t == nil {
		t = new(fullStack)
		o.stacks[e.Head.Stack] = t
	}
	t.End, t.FramePointer = trace.StackEnd(min(o.number(p, fieldEnd), math.MaxUint8)), o.number(p, fieldFramePointer) != 0
	t.Reason = d.ownString(p, fieldReason)
	for line := range strings.Lines(d.ownString(p, fieldNames)) {
		t.Names = append(t.Names, unquote(strings.TrimSuffix(line, "\n")))
	}
	for word := range strings.FieldsSeq(d.ownString(p, fieldFrames)) {
		n, err := strconv.ParseUint(word, 16, 64)
		if err != nil {
			return malformed("frame %q of a stack", word)
		}
		t.Frames = append(t.Frames, n)
	}
	return errNoRecord
}

// unquote restores a text in a list of texts.
func unquote(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return unquoter.Replace(s)
}

var unquoter = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t")

// arguments parses the field Arguments.
func (d *Reader) arguments(p *ownPlan) []trace.Arg {
	d.args = d.args[:0]
	for line := range strings.Lines(d.ownString(p, fieldArguments)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		d.args = append(d.args, trace.Arg{Name: unquote(name), Value: unquote(value)})
	}
	return d.args
}

// hexBytes reads a hexadecimal field.
func (d *Reader) hexBytes(p *ownPlan, index uint8) ([]byte, error) {
	digits := d.ownString(p, index)
	if digits == "" {
		return nil, nil
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil, malformed("bytes in base 16: %v", err)
	}
	return b, nil
}
