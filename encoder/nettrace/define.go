package nettrace

import (
	"strings"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// defined holds the metadata of a stream.
type defined struct {
	layout  layout
	data    []byte // descriptions that are not in a block yet
	last    uint32 // last id that was used
	records [len(wire.OwnRecords)]uint32
	stack   uint32 // of wire.OwnStackName
	classes map[class]recent
	recent  [64]recent // of classes, by recentSlot
	calls   uint32     // number of event ids of calls
}

// define writes a description of events and returns its id.
func (d *defined) define(m wire.Metadata) uint32 {
	d.last++
	m.ID = d.last
	d.data = d.layout.metadata(d.data, &m)
	return m.ID
}

// own is define for events of rtrace's own provider.
func (d *defined) own(eventID uint32, name string, keywords uint64, fields []wire.Field) uint32 {
	return d.define(wire.Metadata{
		Provider: wire.ProviderOwn, EventID: eventID, Name: name, Keywords: keywords,
		Version: wire.OwnVersion, Level: wire.OwnLevel, Fields: fields,
	})
}

// fields is a set of optional fields of a call.
type fields uint16

const (
	hasOldAddress fields = 1 << iota
	hasSize
	hasEntryTime
	hasTime
	hasProcess
	hasSequence
	hasContext
	hasIndex
	hasThread
	hasCaller
	hasArguments
	hasFunction
)

// callFields lists the fields of calls in order. Several fields may share a bit; a
// field with bit 0 is always present.
var callFields = []struct {
	bit   fields
	field wire.Field
}{
	{0, wire.Field{Name: wire.OwnAddress, Type: wire.TypeUInt64}},
	{hasOldAddress, wire.Field{Name: wire.OwnOldAddress, Type: wire.TypeUInt64}},
	{hasSize, wire.Field{Name: wire.OwnSize, Type: wire.TypeUInt64}},
	{hasEntryTime, wire.Field{Name: wire.OwnEntryTime, Type: wire.TypeInt64}},
	{hasTime, wire.Field{Name: wire.OwnTime, Type: wire.TypeInt64}},
	{hasProcess, wire.Field{Name: wire.OwnProcess, Type: wire.TypeInt32}},
	{hasSequence, wire.Field{Name: wire.OwnSequence, Type: wire.TypeUInt64}},
	{hasContext, wire.Field{Name: wire.OwnContext, Type: wire.TypeUInt32}},
	{hasIndex, wire.Field{Name: wire.OwnIndex, Type: wire.TypeUInt64}},
	{hasThread, wire.Field{Name: wire.OwnThread, Type: wire.TypeUInt64}},
	{hasCaller, wire.Field{Name: wire.OwnCaller, Type: wire.TypeString}},
	{hasCaller, wire.Field{Name: wire.OwnFile, Type: wire.TypeString}},
	{hasCaller, wire.Field{Name: wire.OwnLine, Type: wire.TypeUInt64}},
	{hasArguments, wire.Field{Name: wire.OwnArguments, Type: wire.TypeString}},
	{hasFunction, wire.Field{Name: wire.OwnFunction, Type: wire.TypeString}},
}

// class is what calls with the same metadata have in common.
type class struct {
	fields   fields
	op       trace.Op
	resource uint32
	function string // name of the event; empty with hasFunction
}

// recent is a recently used class.
type recent struct {
	class class
	id    uint32 // 0 for none
}

const (
	// maxClasses bounds the number of functions that have events of their own name.
	maxClasses = 1 << 14
	// maxNamed is the length of the longest such name in bytes.
	maxNamed = 1000
	// maxCallID is the last event id for calls, because readers keep it in 16 bits.
	// Later classes share it.
	maxCallID = wire.OwnRecordID - 1
)

// recentSlot returns the slot of a class among the recent ones.
func (c *class) recentSlot() int {
	h := int(c.fields)*31 + int(c.op)*7 + int(c.resource)*3 + len(c.function)
	if n := len(c.function); n > 0 {
		h += int(c.function[0])*5 + int(c.function[n/2])*11 + int(c.function[n-1])*13
	}
	return h & (len(defined{}.recent) - 1)
}

// class returns the metadata id for calls of a class. It adds hasFunction to the fields
// if the name must be a field.
func (d *defined) class(c *class) uint32 {
	r := &d.recent[c.recentSlot()]
	if r.id != 0 && r.class == *c {
		return r.id
	}
	known, ok := d.classes[*c]
	if !ok {
		if c.function != "" && (len(d.classes) >= maxClasses || len(c.function) > maxNamed || !plain(c.function)) {
			c.function = ""
			c.fields |= hasFunction
			return d.class(c)
		}
		known = d.newClass(c)
	}
	*r = known
	return known.id
}

// newClass describes the events of a class.
func (d *defined) newClass(c *class) recent {
	var all []wire.Field
	for _, f := range callFields {
		if f.bit == 0 || c.fields&f.bit != 0 {
			all = append(all, f.field)
		}
	}
	var keywords uint64
	name := c.function
	if name != "" {
		keywords = wire.OwnNamed
	}
	switch c.op {
	case trace.OpAlloc:
		keywords |= wire.OwnAlloc
		name = or(name, "Allocate")
	case trace.OpFree:
		keywords |= wire.OwnFree
		name = or(name, "Free")
	case trace.OpMove:
		keywords |= wire.OwnMove
		name = or(name, "Move")
	default:
		keywords |= wire.OwnUndefined
		name = or(name, "Call")
	}
	keywords |= uint64(c.resource) << wire.OwnResourceShift
	d.calls = min(d.calls+1, maxCallID)
	id := d.own(d.calls, name, keywords, all)
	if d.classes == nil {
		d.classes = make(map[class]recent)
	}
	own := recent{*c, id}
	own.class.function = strings.Clone(c.function) // the name in the record is borrowed
	d.classes[own.class] = own
	return own
}

func or(name, other string) string {
	if name != "" {
		return name
	}
	return other
}
