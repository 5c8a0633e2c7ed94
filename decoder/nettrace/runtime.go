package nettrace

import (
	"fmt"
	"math"
	"strconv"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// The names of calls, by what allocates.
const (
	allocationTick    = "AllocationTick"
	allocationSampled = "AllocationSampled"
)

// sampleDistance is the average number of bytes from one sampled byte to the next.
const sampleDistance = 100 << 10

// call begins a call that a sampler has seen. Each source is a resource of its own,
// because all of them see the same allocations.
func (d *Reader) call(rec *trace.Record, e *Event, source string) *trace.Call {
	id, ok := d.resources[source]
	if !ok {
		id = max(d.opts.FirstResource, 1) + uint32(len(d.resources))
		d.resources[source] = id
		r := trace.Resource{ID: id, Type: "memory", Desc: source + ": only some allocations, each for many", Sampled: true}
		if id > 1 {
			r.Type = source
		}
		if source == wire.EventMalloc {
			r.Desc = "allocations without addresses and frees"
		}
		d.out.push(trace.KindResource).Resource = r
	}
	d.start(rec, e, trace.KindCall)
	d.seq++
	d.stats.Calls++
	rec.Call = trace.Call{Seq: d.seq, Op: trace.OpAlloc, Function: source, Resource: id, Stack: d.stack(e)}
	if e.Thread.ID > math.MaxInt32 {
		rec.Call.Thread = e.Thread.ID
	}
	return &rec.Call
}

// allocationTick handles an event for about every 100 KiB that are allocated. Its size
// is that of all objects since the last tick; its type and address are those of the
// last object.
func (d *Reader) allocationTick(e *Event, rec *trace.Record, _ *plan) error {
	c := cursor{b: e.Payload}
	version := e.Meta.Version
	amount, kind := uint64(c.u32()), c.u32()
	var address, object uint64
	var typeName []byte
	if version >= 1 {
		c.u16()
	}
	if version >= 2 {
		amount = c.u64()
		c.pointer(d.s.info.PointerSize)
		typeName = c.raw16()
		c.u32()
	}
	if version >= 3 {
		address = c.pointer(d.s.info.PointerSize)
	}
	if version >= 4 {
		object = c.u64()
	}
	if c.err != nil {
		return c.err
	}
	call := d.call(rec, e, allocationTick)
	call.ID, call.Size = address, amount
	d.object(call, kind, typeName, object)
	return nil
}

// allocationSampled handles an event for one of many objects. The size of the call is
// that of the objects for which it stands.
func (d *Reader) allocationSampled(e *Event, rec *trace.Record, _ *plan) error {
	c := cursor{b: e.Payload}
	kind := c.u32()
	c.u16()
	c.pointer(d.s.info.PointerSize)
	typeName := c.raw16()
	address, object := c.pointer(d.s.info.PointerSize), c.u64()
	if c.err != nil {
		return c.err
	}
	call := d.call(rec, e, allocationSampled)
	call.ID, call.Size = address, standsFor(object)
	d.object(call, kind, typeName, object)
	return nil
}

// standsFor returns how many bytes a sampled object of the given size stands for: its
// size divided by the probability that one of its bytes is sampled.
func standsFor(size uint64) uint64 {
	if size == 0 || size > 1<<53 {
		return size
	}
	return uint64(math.Round(-float64(size) / math.Expm1(-float64(size)/sampleDistance)))
}

var heaps = [...]string{"small", "large", "pinned"}

// object adds what is known about the allocated object.
func (d *Reader) object(call *trace.Call, kind uint32, typeName []byte, size uint64) {
	args := d.args[:0]
	if len(typeName) > 0 {
		d.format.text = appendUTF16(d.format.text[:0], typeName)
		args = append(args, trace.Arg{Name: "type", Value: d.format.texts.get(d.format.text)})
	}
	if int(kind) < len(heaps) {
		args = append(args, trace.Arg{Name: "heap", Value: heaps[kind]})
	} else {
		args = append(args, trace.Arg{Name: "heap", Value: strconv.FormatUint(uint64(kind), 10)})
	}
	if size > 0 {
		args = append(args, trace.Arg{Name: "object_size", Value: strconv.FormatUint(size, 10)})
	}
	d.args, call.Args = args, args
}

// sampleNames name where a thread was when it was sampled.
var sampleNames = [...]string{"error", "external", "managed"}

// threadSample handles a stack that the sample profiler found.
func (d *Reader) threadSample(e *Event, rec *trace.Record, _ *plan) error {
	c := cursor{b: e.Payload}
	kind := c.u32()
	if c.err != nil {
		return c.err
	}
	name := "unknown"
	if int(kind) < len(sampleNames) {
		name = sampleNames[kind]
	}
	d.start(rec, e, trace.KindSample)
	rec.Sample = trace.Sample{Name: name, Weight: 1, Stack: d.stack(e)}
	return nil
}

// nativeMapFixed is the size of the fields of a MethodILToNativeMap other than its
// entries, in its first version, which later versions extend.
const nativeMapFixed = 21

// nativeMap checks that the fields are there, and rejects what makes the reference
// reader fail.
func (d *Reader) nativeMap(e *Event, rec *trace.Record, p *plan) error {
	c := cursor{b: e.Payload}
	c.bytes(17)
	count := int(c.u16())
	if c.err == nil && 8*count > c.left() {
		return fmt.Errorf("payload of %d bytes with %d entries: %w: %w", len(e.Payload), count, trace.ErrMalformed, errFatal)
	}
	if len(e.Payload) < nativeMapFixed+8*count {
		return fmt.Errorf("payload of %d bytes with %d entries: %w", len(e.Payload), count, trace.ErrMalformed)
	}
	d.raw(rec, e, p)
	rec.Event.Stack = trace.Stack{}
	return nil
}

// method handles an event with the place of a method's code.
func (d *Reader) method(e *Event, _ *trace.Record, _ *plan) error {
	c := cursor{b: e.Payload}
	c.u64()
	key := moduleKey{e.Thread.Process, c.u64()}
	start, size := c.u64(), uint64(c.u32())
	c.u64()
	space, name, signature := c.raw16(), c.raw16(), c.raw16()
	if c.err != nil {
		return c.err
	}
	if start == 0 || size == 0 || start+size < start {
		return errNoRecord // not compiled
	}
	b := appendUTF16(d.format.text[:0], space)
	if len(b) > 0 && len(name) > 0 {
		b = append(b, '.')
	}
	b = appendUTF16(b, name)
	b = appendParameters(b, signature)
	d.format.text = b
	m := method{key, trace.Function{Name: string(b), Start: start, End: start + size}}
	if now := d.symbols.add(&m); now != nil {
		now.record(d.out.push(trace.KindFunction))
	}
	return errNoRecord
}

func (d *Reader) module(e *Event, _ *trace.Record, _ *plan) error {
	return d.symbols.addModule(e, 8+4+4)
}

func (d *Reader) domainModule(e *Event, _ *trace.Record, _ *plan) error {
	return d.symbols.addModule(e, 8+8+4+4)
}
