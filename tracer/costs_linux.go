package tracer

import (
	"fmt"
	"time"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/object"
)

// Costs returns the costs of a probe on this machine, measured once, when the first
// tracer starts. If wait is false and the measurement is not done, the second result is
// false. The error is why it could not be measured.
func (t *Tracer) Costs(wait bool) (host.Costs, bool, error) {
	return host.MeasuredCosts(t.plan.Mechanisms.Attach, wait)
}

// Hits returns how often the probes were hit up to now, and the time inside the programs.
// It may be called from any goroutine until Close.
func (t *Tracer) Hits() (host.Hits, error) {
	const timedOf = 31 // TIMED_OF of bpf/records.h
	var n [3]uint64
	var perCPU []uint64
	for i, kind := range [...]object.ProbeWorkKind{object.ProbeWorkKindWORK_HIT, object.ProbeWorkKindWORK_RETURN, object.ProbeWorkKindWORK_TIME} {
		if err := t.kernel.objects.Work.Lookup(uint32(kind), &perCPU); err != nil {
			return host.Hits{}, fmt.Errorf("read hits of probes: %w", err)
		}
		for _, of := range perCPU {
			n[i] += of
		}
	}
	return host.Hits{Entries: n[0], Returns: n[1], Inside: time.Duration(n[2] * timedOf)}, nil
}
