package functions

import "rtrace-bpf/trace"

// Options says what is recorded. The zero value records nothing.
type Options struct {
	Functions []Function
	Values    []Value
	// Record makes a record of an event, and says whether there is one. Time,
	// process, thread and CPU are there already. What it gives must not hold on to
	// the event.
	Record func(e *Event, r *trace.Record) bool
}

// Any says whether anything is recorded.
func (o *Options) Any() bool { return len(o.Functions) > 0 || len(o.Values) > 0 }
