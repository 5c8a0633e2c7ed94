package estimate

import "rtrace-bpf/trace"

// Totals estimates the allocations of a whole trace. The zero value is ready to use.
type Totals struct {
	Windows
	calls, allocations, bytes Sum
}

// Record processes a record.
func (t *Totals) Record(r *trace.Record) {
	if r.Kind == trace.KindCall {
		t.add(r)
		return
	}
	t.Observe(r)
}

// add adds a call.
func (t *Totals) add(r *trace.Record) {
	t.calls.Add(&t.Windows, 1)
	if r.Call.Op == trace.OpAlloc || r.Call.Op == trace.OpMove {
		t.allocations.Add(&t.Windows, 1)
		t.bytes.Add(&t.Windows, float64(r.Call.Size))
	}
}

// Calls returns the number of all calls.
func (t *Totals) Calls() Estimate { return t.calls.Estimate(&t.Windows) }

// Allocations returns the number of allocations, reallocs included.
func (t *Totals) Allocations() Estimate { return t.allocations.Estimate(&t.Windows) }

// Bytes returns how many bytes were allocated.
func (t *Totals) Bytes() Estimate { return t.bytes.Estimate(&t.Windows) }
