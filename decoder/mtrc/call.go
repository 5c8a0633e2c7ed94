package mtrc

import (
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// convert makes a record of the event. done is false if the event has no record.
func (d *Reader) convert(rec *trace.Record) (done bool, err error) {
	e := &d.event
	switch e.Kind {
	case wire.Heap, wire.Internal:
		d.start(rec, trace.KindHeapGrow)
		rec.HeapGrow = trace.HeapGrow{Address: e.Address, Size: e.Size, Internal: e.Kind == wire.Internal}
		return true, nil
	case wire.Alloc:
		d.call(rec, trace.OpAlloc, "malloc")
		if _, live := d.blocks.Insert(0, e.Index, e.Size, e.Address); live {
			d.stats.Twice++
			err = d.contradiction("is live already")
		}
	case wire.Realloc:
		d.call(rec, trace.OpMove, "realloc")
		old, live := d.blocks.Insert(0, e.Index, e.Size, e.Address)
		if rec.Call.OldID = old.Value; !live {
			rec.Call.Op = trace.OpAlloc
			d.stats.Adopted++
			err = d.contradiction("is not live")
		}
	case wire.Free:
		old, live := d.blocks.Remove(0, e.Index)
		if !live {
			d.stats.Unknown++
			return false, d.contradiction("is not live")
		}
		d.call(rec, trace.OpFree, "free")
		rec.Call.ID = old.Value
	}
	d.stats.Calls++
	d.seq++
	rec.Call.Seq = d.seq
	return err == nil, err
}

// contradiction returns the error for an event that contradicts earlier ones, or nil
// unless reading is strict.
func (d *Reader) contradiction(how string) error {
	if !d.opts.Strict {
		return nil
	}
	return syntaxError(d.s.last, malformed("record %c: block %d %s", d.event.Kind, d.event.Index, how))
}

// call sets rec to a call with the data of the event. The format does not record which
// function was called: function is the usual one for the kind of event.
func (d *Reader) call(rec *trace.Record, op trace.Op, function string) {
	e, c := &d.event, &rec.Call
	d.start(rec, trace.KindCall)
	c.Op, c.Function, c.Resource = op, function, memory
	c.ID, c.OldID, c.Size, c.Index = e.Address, 0, e.Size, e.Index
	c.EntryTime, c.Context = 0, 0
	c.Caller = trace.Caller{Function: e.Source.Function.Text, File: e.Source.File.Text, Line: e.Source.Line}
	c.Stack, c.Args = trace.Stack{}, nil
	c.Thread = e.Source.Thread
	if c.Thread <= wire.MaxTID {
		rec.TID, c.Thread = int32(c.Thread), 0
	}
}
