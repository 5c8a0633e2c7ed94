package digest

import (
	"rtrace-bpf/internal/analysis/blocks"
	"rtrace-bpf/trace"
)

// threads is the threads that used a type of resource.
type threads struct {
	blocks.Threads
	uses []use // by number
}

// number returns the number of the thread that made a call.
func (t *threads) number(r *trace.Record) uint32 {
	n, _ := t.Number(r) // there is no limit
	if int(n) == len(t.uses) {
		t.uses = append(t.uses, use{})
	}
	return n
}
