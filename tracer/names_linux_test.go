package tracer

import (
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// resolved returns a function that names addresses at the end of a trace.
func resolved(records []*trace.Record) func(uint64) string {
	r := resolve.New(resolve.Options{})
	for _, rec := range records {
		// Mappings that end with the process are still needed.
		if rec.Kind != trace.KindUnmapping && rec.Kind != trace.KindExit {
			r.Observe(rec)
		}
	}
	return r.Text
}
