package tracer

import (
	"rtrace-bpf/tracer/host"
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
	return t.kernel.programs.Hits()
}
