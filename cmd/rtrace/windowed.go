package main

import (
	"rtrace-bpf/trace"
)

// windowed reports whether the trace was recorded in windows. It reads up to the first call, and then
// the input begins again.
func (in *input) windowed() bool {
	again := &againReader{from: in.Reader}
	in.Reader = again
	var r trace.Record
	for {
		if again.err = again.from.ReadRecord(&r); again.err != nil {
			return false
		}
		again.kept = append(again.kept, r.Clone())
		if r.Kind == trace.KindWindow || r.Kind == trace.KindCall {
			return r.Kind == trace.KindWindow
		}
	}
}

// againReader is a trace.Reader that begins with records that were read before.
type againReader struct {
	from trace.Reader
	kept []*trace.Record
	err  error // after them
}

// ReadRecord implements trace.Reader.
func (a *againReader) ReadRecord(r *trace.Record) error {
	switch {
	case len(a.kept) > 0:
		*r = *a.kept[0]
		a.kept = a.kept[1:]
		return nil
	case a.err != nil:
		return a.err
	}
	return a.from.ReadRecord(r)
}
