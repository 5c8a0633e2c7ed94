package swap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// memory is the id of the first resource. The others are declared at their first call.
const memory = 1

// Reader reads the records of a stream of messages. It is a trace.Reader whose strings
// belong to the caller; slices are valid until the next ReadRecord.
//
// A message that has no record is delivered as Opaque, with the time, process, thread
// and processor that it contains. An End is delivered if rtrace's own message announces
// one and another one confirms it.
type Reader struct {
	messages
	opts  Options
	stats Stats
	err   error

	queue    queue
	deferred bool   // msg was read and its gap delivered: convert it next
	ends     bool   // the stream announces its end
	seq      uint64 // of calls

	functions functions
	mapped    mappings
	objects   objects

	frames  []uint64
	args    [2]trace.Arg
	rewrite []byte // payload with its times in the other order
}

// Stats counts what a Reader has read.
type Stats struct {
	// Version is that of the protocol, with the order of times if it is unusual.
	Version  string
	Messages uint64
	Calls    uint64
	Lost     uint64 // messages, from gaps in the sequence numbers and from messages that describe losses
	Unknown  uint64 // messages with unknown ids
	Damaged  uint64 // messages that do not parse
	// CallTypes counts the call types of the probe messages.
	CallTypes CallTypes
}

var _ trace.Reader = (*Reader)(nil)

// NewReader returns a reader of a stream of messages.
func NewReader(r io.Reader, o Options) (*Reader, error) {
	s, err := NewScanner(r, o)
	if err != nil {
		return nil, err
	}
	p, err := NewParser(o)
	if err != nil {
		return nil, err
	}
	d := &Reader{messages: messages{s: s, parser: *p}, opts: o, functions: functions{}, mapped: mappings{}, objects: newObjects()}
	maps.Copy(d.functions, o.APIs)
	return d, nil
}

// Stats returns the counters so far.
func (d *Reader) Stats() Stats {
	stats := d.stats
	stats.Version = wire.Protocol
	if d.s.formula {
		stats.Version += ", nanoseconds first"
	}
	if stats.CallTypes.Kernel() {
		stats.Version += ", call types of the kernel"
	}
	return stats
}

// ReadRecord implements trace.Reader. Errors are sticky.
func (d *Reader) ReadRecord(rec *trace.Record) error {
	for d.err == nil {
		if d.queue.take(rec) {
			return nil
		}
		if !d.deferred {
			if d.err = d.s.Next(&d.msg); d.err != nil {
				break
			}
			if d.sequence(rec) {
				return nil
			}
		}
		d.deferred = false
		d.stats.Messages++
		done, err := d.convert(rec)
		if err != nil {
			d.err = err
		}
		if done || err != nil {
			return err
		}
	}
	return d.err
}

// sequence checks the sequence number of the message. It returns true and sets rec if a
// record must be delivered before the message.
func (d *Reader) sequence(rec *trace.Record) bool {
	gap, first := d.gap()
	d.stats.Lost += d.loss.Count + gap
	d.deferred = first || gap > 0
	switch {
	case first:
		d.begin(rec)
	case gap > 0:
		d.start(rec, trace.KindLost)
		rec.Lost = trace.Lost{Count: gap, Reason: wire.GapReason}
	}
	return d.deferred
}

// begin delivers the records that every trace begins with.
func (d *Reader) begin(rec *trace.Record) {
	d.start(rec, trace.KindHeader)
	now := d.msg.Nanoseconds()
	rec.Time = 0
	d.ends = d.msg.ID == wire.End && bytes.Equal(d.msg.Data, []byte{0, 0, 0, 0})
	rec.Header = trace.Header{
		Format: wire.Format, Version: wire.Protocol, Clock: trace.ClockWall, WallTime: now, ClockTime: now, Ends: d.ends,
	}
	*d.queue.add() = trace.Record{
		Kind: trace.KindResource, Resource: trace.Resource{ID: memory, Type: wire.Resource, Desc: "memory allocation in bytes"},
	}
}

// start resets the fields that all records share.
func (d *Reader) start(rec *trace.Record, kind trace.Kind) {
	rec.Kind = kind
	rec.Time = d.msg.Nanoseconds()
	rec.PID, rec.TID, rec.CPU = 0, 0, 0
}

// convert makes a record of the message. done is false if the message has no record.
func (d *Reader) convert(rec *trace.Record) (done bool, err error) {
	m := &d.msg
	if m.ID == wire.ProbeMemory {
		if ok, err := d.call(rec); ok || err != nil {
			return ok, err
		}
	}
	if err := d.parser.Parse(m, &d.fields); err != nil || d.fields.Flawed {
		if err := d.odd(err); err != nil {
			return false, err
		}
		if d.fields.Message == nil || err != nil {
			d.opaque(rec)
			return true, nil
		}
	}
	f := &d.fields
	if len(f.Tail) == 0 {
		switch m.ID {
		case wire.ProcessInfo:
			d.process(rec)
			return true, nil
		case wire.Terminate:
			d.start(rec, trace.KindExit)
			rec.PID = int32(f.number("pid"))
			rec.TID = rec.PID
			rec.Exit = trace.Exit{Process: true}
			return true, nil
		case wire.Error:
			d.start(rec, trace.KindComment)
			rec.Comment = oneLine(string(f.Values[0].Text))
			if d.loss.Reason != "" {
				rec.Kind, rec.Lost = trace.KindLost, d.loss
			}
			return true, nil
		case wire.ProcessMap:
			d.start(rec, trace.KindMapping)
			rec.PID = int32(f.Values[0].Num)
			rec.Mapping = d.mapped.add(rec.PID, f.Values[1].Num, f.Values[2].Num, string(f.Values[3].Text))
			return true, nil
		case wire.ProcessUnmap:
			d.unmapping(rec)
			return true, nil
		case wire.ProcessComm:
			d.start(rec, trace.KindThread)
			rec.PID = int32(f.Values[0].Num)
			rec.TID = rec.PID
			rec.Thread.Name = string(f.Values[1].Text)
			return true, nil
		case wire.ProbeFile, wire.ProbeThread, wire.ProbeSync, wire.ProbeNetwork:
			if delivered, swallowed := d.object(rec); delivered || swallowed {
				return delivered, nil
			}
		case wire.End:
			switch reached := f.Values[0].Num; {
			case d.ends && reached == 1:
				d.start(rec, trace.KindEnd)
				return true, nil
			case d.ends && reached == 0 && d.stats.Messages == 1:
				return false, nil
			}
		case wire.APIName:
			d.functions.add(uint32(f.Values[0].Num), string(f.Values[1].Text))
			return false, nil
		}
	}
	d.opaque(rec)
	return true, nil
}

// oneLine joins the lines of a text.
func oneLine(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
}

// odd counts a message that is unknown or does not parse. It returns an error if
// reading is strict.
func (d *Reader) odd(err error) error {
	unknown := errors.Is(err, errUnknown)
	if err == nil {
		err = malformed("a string has no end")
	}
	if unknown {
		d.stats.Unknown++
	} else {
		d.stats.Damaged++
	}
	// An unknown private message is another writer's and no error.
	if !d.opts.Strict || unknown && d.msg.ID >= wire.FirstPrivate {
		return nil
	}
	name := fmt.Sprintf("%#x", d.msg.ID)
	if d.fields.Message != nil {
		name = d.fields.Message.Name
	}
	return syntaxError(d.msg.Offset, &messageError{name, err})
}

// number returns the number in the field with the given name, or 0.
func (f *Fields) number(name string) uint64 {
	for i := range f.Values {
		if v := &f.Values[i]; v.Field != nil && v.Field.Name == name {
			return v.Num
		}
	}
	return 0
}

// opaque delivers the message unchanged.
func (d *Reader) opaque(rec *trace.Record) {
	d.start(rec, trace.KindOpaque)
	if v := d.fields.field("call_type"); v != nil && d.msg.ID != wire.LSAN {
		d.stats.CallTypes.add(uint32(v.Num))
	}
	rec.Opaque = trace.Opaque{Format: wire.Format, ID: d.msg.ID, Data: d.msg.Data}
	times := false
	for i := range d.fields.Values {
		v := &d.fields.Values[i]
		if v.Field.Type == wire.List || v.Field.Type == wire.Items {
			break // the contents of lists are about others
		}
		switch v.Field.Name {
		case "pid":
			rec.PID = int32(v.Num)
		case "tid":
			rec.TID = int32(v.Num)
		case "cpu":
			rec.CPU = int32(v.Num) + 1
		}
		times = times || v.Field.Type == wire.Time
	}
	if !times || !d.msg.Formula {
		return
	}
	// A writer of the record does not know the order of its times: use the usual
	// one.
	d.rewrite = d.rewrite[:0]
	for i := range d.fields.Values {
		d.rewrite = appendValue(d.rewrite, &d.fields.Values[i], false)
	}
	rec.Opaque.Data = append(d.rewrite, d.fields.Tail...)
}
