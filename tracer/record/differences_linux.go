package record

import (
	"fmt"

	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// differences reports calls that a site inside a function did not record as they were made:
// Options.VerifySites.
type differences struct {
	warn func(format string, args ...any)
	plan *plan.Plan
	seen int
}

// report reports a difference, unless there were many.
func (d *differences) report(e *order.Event) {
	if d.seen++; d.seen > MaxDifferences {
		return
	}
	d.warn("call differs: returned %#x of %d bytes; recorded %s", e.Addr, e.Size, d.recorded(e))
}

// recorded describes what the sites recorded of a call.
func (d *differences) recorded(e *order.Event) string {
	if e.Argument == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%#x of %d bytes at %s, %d times", e.Old, e.Entry, d.plan.SiteName(e.Stack), e.Argument)
}
