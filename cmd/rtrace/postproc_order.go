package main

import (
	"cmp"
	"slices"
	"strings"

	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// inOrder is a reader of a text whose calls are grouped by stack, according to its header.
// It holds all calls and returns them in the order of their numbers. Other records between
// and after them come last.
type inOrder struct {
	src    trace.Reader
	apart  bool // the calls are not in order
	calls  sortedCalls
	others []*trace.Record
	all    bool // src is read to its end
}

var _ trace.Reader = (*inOrder)(nil)

// ReadRecord implements trace.Reader.
func (o *inOrder) ReadRecord(r *trace.Record) error {
	if o.all {
		return o.held(r)
	}
	err := o.src.ReadRecord(r)
	switch {
	case err != nil:
		return err
	case r.Kind == trace.KindHeader:
		o.apart = o.apart || strings.Contains(r.Header.Filter, wire.FilterCompress)
	case r.Kind == trace.KindCall && o.apart:
		o.read(r)
		return o.held(r)
	}
	return nil
}

// read reads everything from the first call on.
func (o *inOrder) read(r *trace.Record) {
	for o.calls.err == nil {
		if r.Kind == trace.KindCall {
			o.calls.add(r)
		} else {
			o.others = append(o.others, r.Clone())
		}
		o.calls.err = o.src.ReadRecord(r)
	}
	slices.SortStableFunc(o.calls.calls, func(a, b timedCall) int { return cmp.Compare(a.call.Seq, b.call.Seq) })
	o.all = true
}

func (o *inOrder) held(r *trace.Record) error {
	if o.calls.next < len(o.calls.calls) || len(o.others) == 0 {
		return o.calls.ReadRecord(r)
	}
	*r = *o.others[0]
	o.others = o.others[1:]
	return nil
}
