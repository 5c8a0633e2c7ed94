package tracer

import (
	"fmt"
	"time"
)

// Costs returns what a probe costs on this machine, and whether that is known yet, or
// waits for it. It is measured once, when the first tracer starts. If it cannot be
// measured the error says why.
func (t *Tracer) Costs(wait bool) (Costs, bool, error) {
	return measuredCosts(t.plan.Mechanism(), wait)
}

// Hits returns how often the probes were hit up to now. It may be called from any
// goroutine, until Close.
func (t *Tracer) Hits() (Hits, error) {
	const timedOf = 31 // TIMED_OF of bpf/records.h
	var n [3]uint64
	var perCPU []uint64
	for i, kind := range [...]probeWorkKind{probeWorkKindWORK_HIT, probeWorkKindWORK_RETURN, probeWorkKindWORK_TIME} {
		if err := t.kernel.objects.Work.Lookup(uint32(kind), &perCPU); err != nil {
			return Hits{}, fmt.Errorf("read hits of probes: %w", err)
		}
		for _, of := range perCPU {
			n[i] += of
		}
	}
	return Hits{Entries: n[0], Returns: n[1], Inside: time.Duration(n[2] * timedOf)}, nil
}
