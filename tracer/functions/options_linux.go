package functions

import "rtrace-bpf/trace"

// Options selects what is recorded. The zero value records nothing.
type Options struct {
	Functions []Function
	Values    []Value
	// Record fills in a record for an event, and reports whether there is one. Time, process,
	// thread and CPU are set before. The record must not refer to the event's memory.
	Record func(e *Event, r *trace.Record) bool
}

// Any reports whether anything is recorded.
func (o *Options) Any() bool { return len(o.Functions) > 0 || len(o.Values) > 0 }
