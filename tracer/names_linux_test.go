package tracer

import (
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// resolved returns a function that names addresses with the mappings at the end of a
// trace.
func resolved(records []*trace.Record) func(uint64) string {
	r := resolve.New(resolve.Options{})
	for _, rec := range records {
		// Keep the mappings that end with the process.
		if rec.Kind != trace.KindUnmapping && rec.Kind != trace.KindExit {
			r.Observe(rec)
		}
	}
	return r.Text
}
