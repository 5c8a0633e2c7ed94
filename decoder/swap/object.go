package swap

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// object is a call that allocated or freed something other than memory.
type object struct {
	*wire.Object
	function string
	ends     bool
	id       uint64
	fields   *Fields
}

// objectOf returns what a message has allocated or freed. It returns false for a message
// about another object, for a call that only begins or has failed, and for a function
// whose name is unknown.
func (d *Reader) objectOf(f *Fields) (x object, ok bool) {
	if f.Message == nil || f.Layout != &f.Message.Layouts[0] || len(f.Tail) > 0 || f.Flawed {
		return x, false
	}
	x.fields = f
	if x.function, ok = d.functions.known(uint32(f.number("api_id"))); !ok {
		return x, false
	}
	result, first := f.field("return"), f.firstItem()
	if result == nil {
		return x, false
	}
	switch f.Message.ID {
	case wire.ProbeSync:
		x.Object, x.id = wire.LookupSync(uint32(f.number("sync_type"))), f.number("object")
	case wire.ProbeThread:
		x.Object, x.id = wire.LookupObject("thread"), f.number("pthread_id")
	case wire.ProbeFile, wire.ProbeNetwork:
		x.Object, x.id = wire.LookupObject(wire.Descriptor), f.number("fd")
		if result.Letter == 'p' {
			x.Object, x.id = wire.LookupObject(wire.Stream), result.Num
		} else if first != nil && first.Letter == 'p' {
			x.Object, x.id = wire.LookupObject(wire.Stream), first.Num
		}
	}
	if x.Object == nil || !x.way(uint32(f.number("api_type"))) {
		return x, false
	}
	return x, x.happened(result)
}

// way sets x.ends by the function and the kind of the message. It returns false for a
// function that neither allocates nor frees.
func (x *object) way(kind uint32) bool {
	for _, ends := range []bool{false, true} {
		if w := x.Way(x.function, ends); w.Message == x.fields.Message.ID && w.Type == kind {
			x.ends = ends
			return true
		}
	}
	x.ends = x.fields.Message.ID == wire.ProbeNetwork && kind == wire.NetworkClose
	return x.ends
}

// happened reports whether the call succeeded.
func (x *object) happened(result *Value) bool {
	switch {
	case x.Resource == wire.Descriptor:
		// A number of 32 bits; some writers do not extend its sign.
		return x.id < 1<<31 && (result.Letter == 'n' || int32(uint32(result.Num)) >= 0)
	case x.id == 0:
		return false
	case x.Resource == wire.Stream, x.Resource == wire.Condition:
		return true // the stream or the wait is over, whatever the result
	}
	return uint32(result.Num) == 0
}

// firstItem returns the first argument, or nil.
func (f *Fields) firstItem() *Value {
	for i := range f.Values {
		if v := &f.Values[i]; v.Field != nil && v.Field.Type == wire.Items {
			if v.Num > 0 {
				return &f.Values[i+1]
			}
			return nil
		}
	}
	return nil
}

// begun is a call that has not ended.
type begun struct {
	message, api uint32
	time         int64
}

// maxBegun bounds the number of threads whose open calls are remembered.
const maxBegun = 1 << 16

// objects remembers what calls about anything but memory refer to.
type objects struct {
	resources map[*wire.Object]uint32 // ids
	begun     map[place]begun         // the last open call of each thread
}

func newObjects() objects {
	return objects{resources: make(map[*wire.Object]uint32), begun: make(map[place]begun)}
}

// resource returns the id of an object's resource, and whether it was known before.
func (t *objects) resource(x *wire.Object) (id uint32, known bool) {
	if id, known = t.resources[x]; !known {
		id = memory + 1 + uint32(len(t.resources))
		t.resources[x] = id
	}
	return id, known
}

// begin remembers a call that begins, if there is room.
func (t *objects) begin(thread place, call begun) {
	if len(t.begun) < maxBegun {
		t.begun[thread] = call
	}
}

// end returns how long a call that ends has lasted, in nanoseconds; 0 if its start is not
// known.
func (t *objects) end(thread place, call begun) uint64 {
	was, ok := t.begun[thread]
	if !ok || was.message != call.message || was.api != call.api {
		return 0
	}
	delete(t.begun, thread)
	return uint64(max(call.time-was.time, 0))
}

// object delivers the call that a message is about. The message for the start of a call
// is swallowed if the message for its end follows directly. A message that is neither
// delivered nor swallowed is left to opaque.
func (d *Reader) object(rec *trace.Record) (delivered, swallowed bool) {
	f := &d.fields
	thread := place{uint32(f.number("pid")), uint32(f.number("tid"))}
	this := begun{f.Message.ID, uint32(f.number("api_id")), d.msg.Nanoseconds()}
	x, ok := d.objectOf(f)
	if !ok {
		if !isStart(f) {
			return false, false
		}
		d.objects.begin(thread, this)
		swallowed = d.endsNext(thread, this)
		d.again()
		return false, swallowed
	}
	d.deliverObject(rec, &x, d.objects.end(thread, this))
	return true, false
}

// place identifies a thread.
type place struct{ pid, tid uint32 }

// isStart reports whether a message is about the start of a call.
func isStart(f *Fields) bool {
	v := f.field("api_type")
	if v == nil || len(f.Tail) > 0 || f.Flawed {
		return false
	}
	switch kind := uint32(v.Num); f.Message.ID {
	case wire.ProbeSync:
		return kind == wire.SyncWaitStart || kind == wire.SyncConditionStart
	case wire.ProbeThread:
		return kind == wire.ThreadWaitStart
	case wire.ProbeNetwork:
		return kind == wire.NetworkAcceptStart
	}
	return false
}

// endsNext reports whether the next message is the end of the call and shows what it
// allocated or freed.
func (d *Reader) endsNext(thread place, call begun) bool {
	if !d.lookAhead(call.message) || uint32(d.after.number("api_id")) != call.api ||
		(place{uint32(d.after.number("pid")), uint32(d.after.number("tid"))}) != thread {
		return false
	}
	_, ok := d.objectOf(&d.after)
	return ok
}

// deliverObject delivers a call, after the declaration of its resource if that is new.
func (d *Reader) deliverObject(rec *trace.Record, x *object, waited uint64) {
	call := rec
	resource, known := d.objects.resource(x.Object)
	if !known {
		d.start(rec, trace.KindResource)
		rec.Time = 0
		rec.Resource = trace.Resource{ID: resource, Type: x.Resource, Desc: x.Desc, RefCount: x.RefCount}
		call = d.queue.add()
	}
	d.start(call, trace.KindCall)
	f := x.fields
	thread := place{uint32(f.number("pid")), uint32(f.number("tid"))}
	api := uint32(f.number("api_id"))
	call.PID, call.TID = int32(thread.pid), int32(thread.tid)
	d.stats.Calls++
	d.stats.CallTypes.add(uint32(f.number("call_type")))
	d.seq++
	call.Call = trace.Call{Seq: d.seq, Op: trace.OpAlloc, Function: x.function, Resource: resource, ID: x.id, Size: 1, Args: x.args()}
	c := &call.Call
	switch {
	case x.ends:
		c.Op, c.Size = trace.OpFree, 0
	case x.Message == wire.ProbeSync:
		c.Size = waited
	}
	caller := f.number("caller")
	_ = d.stack(&c.Stack, caller) // the next read returns an error of what follows
	if x.Resource == wire.Condition && !x.ends && !d.overNext(thread, api) {
		// Only rtrace's own writer has a message for the end of a finished wait.
		d.seq++
		over := *call
		over.Call.Seq, over.Call.Op, over.Call.Size, over.Call.Args = d.seq, trace.OpFree, 0, nil
		d.stats.Calls++
		*d.queue.add() = over
	}
}

// overNext reports whether the next message shows that a wait for a condition is over.
func (d *Reader) overNext(thread place, api uint32) bool {
	if !d.lookAhead(wire.ProbeSync) || uint32(d.after.number("api_id")) != api ||
		(place{uint32(d.after.number("pid")), uint32(d.after.number("tid"))}) != thread {
		return false
	}
	x, ok := d.objectOf(&d.after)
	return ok && x.ends && x.Resource == wire.Condition
}

// args returns the arguments that a Call can hold: known parameters, and the texts
// NAME=VALUE of rtrace's own writer.
func (x *object) args() (all []trace.Arg) {
	items := x.items()
	params := x.Params(x.function, x.ends)
	for i := range items {
		v := &items[i]
		if i < len(params) {
			if p := &params[i]; p.Name != "" && p.Letter == v.Letter {
				all = append(all, trace.Arg{Name: p.Name, Value: valueOf(p, v)})
			}
			continue
		}
		if name, value, ok := strings.Cut(string(v.Text), "="); ok && v.Letter == 's' {
			all = append(all, trace.Arg{Name: name, Value: value})
		}
	}
	ip := x.fields.field("ip")
	if port := uint16(x.fields.number("port")); ip != nil && ip.Num != 0 && !slices.ContainsFunc(all, func(a trace.Arg) bool { return a.Name == "family" }) {
		n := uint32(ip.Num)
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}), port)
		all = append(all, trace.Arg{Name: "family", Value: "AF_INET"}, trace.Arg{Name: "address:port", Value: at.String()})
	}
	return all
}

// items returns the arguments of the message.
func (x *object) items() []Value {
	values := x.fields.Values
	for i := range values {
		if v := &values[i]; v.Field != nil && v.Field.Type == wire.Items {
			return values[i+1 : i+1+int(v.Num)]
		}
	}
	return nil
}

// valueOf returns an argument as a Call has it.
func valueOf(p *wire.Param, v *Value) string {
	switch {
	case p.Letter == 's':
		return string(v.Text)
	case p.Hex && p.Letter == 'd':
		return "0x" + strconv.FormatUint(uint64(uint32(v.Num)), 16)
	case p.Hex:
		return "0x" + strconv.FormatUint(v.Num, 16)
	}
	return strconv.FormatInt(int64(v.Num), 10)
}
