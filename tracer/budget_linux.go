package tracer

import (
	"fmt"
	"time"

	"rtrace-bpf/tracer/governor"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// attachWithin attaches the probes, and returns the windows of a plan with a budget; nil
// without one. With windows, the programs are still off.
func (k *kernel) attachWithin(p *plan.Plan) (*governor.Windows, error) {
	if p.Options.Budget == 0 {
		return nil, k.attach(p)
	}
	host.MeasureInBackground(p.Mechanisms.Attach)
	each, _, err := host.MeasuredCosts(p.Mechanisms.Attach, true)
	if err != nil {
		return nil, fmt.Errorf("a budget needs to know what a probe costs: %w", err)
	}
	attached := false
	w := governor.NewWindows(p.Options.Budget, governor.Meters{
		Process: func() (time.Duration, error) { return governor.CPUTime(p.Target.PID) },
		Moves: func() (time.Duration, error) {
			if !attached {
				return 0, nil
			}
			return k.probes.MoveTime(), nil
		},
		Hits: func() (time.Duration, error) {
			if !attached {
				return 0, nil
			}
			hits, err := k.programs.Hits()
			return each.Cost(hits), err
		},
	})
	err = k.attach(p)
	attached = err == nil
	return w, err
}
